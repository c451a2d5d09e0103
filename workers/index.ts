/**
 * The worker process: `npm run worker`. Needs DATABASE_URL, and REDIS_URL, since its ingresses are other processes; and what
 * it signs pictures with, given or kept in DATA_DIR.
 */

import { makeAssetStore, warningOf } from '../core/assets/make-store.ts';
import { loadConfig, requireStores } from '../core/config.ts';
import { makeLogger } from '../core/logger.ts';
import { requireIdentity } from '../core/provenance/identity.ts';
import { makeRedisBus } from '../core/relay/bus.ts';
import { runProcess } from '../core/shutdown.ts';
import { startWorker } from './worker.ts';

await runProcess('worker', async () => {
  const config = loadConfig();
  const { databaseUrl, redisUrl } = requireStores(config, 'worker');
  const signingWarning = await requireIdentity(config);
  const logger = makeLogger('worker', config.logLevel);
  const store = await makeAssetStore(config);
  for (const warning of [warningOf(config), signingWarning]) {
    if (warning !== undefined) logger.warn(warning);
  }
  const bus = await makeRedisBus(redisUrl, (error) => logger.warn({ err: error }, 'Redis'));
  const worker = await startWorker({ config, databaseUrl, bus, store, logger, env: process.env });
  logger.info('working');
  return {
    logger,
    steps: [
      ...worker.shutdown,
      { name: 'relay', run: () => bus.close() },
      { name: 'assets', run: () => store.close() },
    ],
  };
});
