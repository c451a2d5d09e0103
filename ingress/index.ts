/** The web process: `npm run web`. Needs DATABASE_URL, and REDIS_URL, since its workers are other processes. */
import { makeAssetStore, warningOf } from '../core/assets/make-store.ts';
import { loadConfig, requireStores, warningsOf } from '../core/config.ts';
import { makeLogger } from '../core/logger.ts';
import { makeRedisBus } from '../core/relay/bus.ts';
import { runProcess } from '../core/shutdown.ts';
import { startIngress } from './server.ts';

await runProcess('web', async () => {
  const config = loadConfig();
  const { databaseUrl, redisUrl } = requireStores(config, 'web');
  const logger = makeLogger('web', config.logLevel);
  const store = await makeAssetStore(config);
  const warning = warningOf(config);
  if (warning !== undefined) logger.warn(warning);
  for (const text of warningsOf(config)) logger.warn(text);
  const bus = await makeRedisBus(redisUrl, (error) => logger.warn({ err: error }, 'Redis'));
  const ingress = await startIngress({ config, databaseUrl, bus, store, logger });
  logger.info({ port: ingress.port }, 'listening');
  return {
    logger,
    steps: [
      ...ingress.shutdown,
      { name: 'relay', run: () => bus.close() },
      { name: 'assets', run: () => store.close() },
    ],
  };
});
