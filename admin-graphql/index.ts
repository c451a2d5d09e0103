/** The process `admin`: the operators' GraphQL on ADMIN_PORT. Needs DATABASE_URL. Keep its port off the public network. */
import { loadConfig } from '../core/config.ts';
import { makeLogger } from '../core/logger.ts';
import { runProcess } from '../core/shutdown.ts';
import { makeAdminServer } from './app.ts';

await runProcess('admin', async () => {
  const config = loadConfig();
  const { databaseUrl } = config;
  if (databaseUrl === undefined) {
    throw new Error('DATABASE_URL is not set: admin needs the address of a PostgreSQL database');
  }
  const logger = makeLogger('admin', config.logLevel);
  const server = await makeAdminServer({ config, logger, databaseUrl });
  const listening = await server.listen(config.adminPort, config.host);
  logger.info({ host: config.host, port: listening.port }, 'listening');
  return { logger, steps: [{ name: 'admin server', run: () => listening.close() }] };
});
