/**
 * One worker: the queue engine with our tasks, heartbeats, rescue. Started by `index.ts` (the worker process) and by `npm start`.
 */
import { EventEmitter } from 'node:events';
import {
  Logger as EngineLogger,
  run,
  type TaskList,
  type WorkerEvents,
  type WorkerPool,
} from 'graphile-worker';
import { v4 as uuidv4 } from 'uuid';
import { makeAssetFiles } from '../core/assets/files.ts';
import type { AssetStore } from '../core/assets/store.ts';
import { makeCatalogueCache } from '../core/catalogue.ts';
import type { Config } from '../core/config.ts';
import { makePool, type Pool } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import { listenForNotifications } from '../core/notifications.ts';
import { startHeartbeat } from '../core/processes.ts';
import { makeSigner } from '../core/provenance/signer.ts';
import type { Bus } from '../core/relay/bus.ts';
import type { ShutdownStep } from '../core/shutdown.ts';
import { every, makeActiveRuns } from './active-runs.ts';
import { makeRunAssets } from './assets.ts';
import { makePaidTask } from './executor.ts';
import { makePatient } from './patient-pool.ts';
import { type Engine, makeRescue } from './rescue.ts';
import { makeRoutes } from './routes.ts';
import { makeSettler } from './settle.ts';
import { makeChatTask } from './tasks/chat/completions.ts';
import { makeImageTask } from './tasks/images/generate.ts';
import { CRON_ITEMS, makeMaintenanceTasks } from './tasks/maintenance/index.ts';

export interface Worker {
  /** In order: take no more jobs, let those under way finish, close. */
  readonly shutdown: readonly ShutdownStep[];
}

const POOL_SIZE = 6;
const ENGINE_POOL_SIZE = 6;
const STATEMENT_TIMEOUT_MS = 30_000;
/** A balance somebody holds locked: the others of the batch are settled without it. */
const LOCK_TIMEOUT_MS = 3000;
/** The engine notes finished jobs together, this long after the first; the caller's answer does not wait for it. */
const COMPLETE_BATCH_DELAY_MS = 25;
/** How long jobs may finish after SIGTERM before they are stopped and left to another worker. */
const DRAIN_MS = 15_000;

export async function startWorker(options: {
  config: Config;
  databaseUrl: string;
  bus: Bus;
  /** Not closed with the worker. */
  store: AssetStore;
  logger: Logger;
  env: Readonly<Record<string, string | undefined>>;
}): Promise<Worker> {
  const { config, databaseUrl, bus, store, logger } = options;
  const onError = (what: string) => (error: Error) => logger.warn({ err: error }, what);
  const workerId = uuidv4();
  const pool = await makePool({
    databaseUrl,
    role: 'app_worker',
    applicationName: 'svc-worker',
    maxConnections: POOL_SIZE,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    lockTimeoutMs: LOCK_TIMEOUT_MS,
    onError: onError('an idle database connection broke'),
  });
  const catalogue = await makeCatalogueCache(pool, onError('the catalogue could not be read'));
  const notifications = await listenForNotifications({
    databaseUrl,
    applicationName: 'svc-worker-listen',
    handlers: { svc_catalogue: () => void catalogue.refresh() },
    onGap: (isConnected) => {
      if (isConnected) void catalogue.refresh();
    },
    onError: onError('the notification connection broke'),
  });
  const routes = makeRoutes(catalogue, options.env);
  const settler = makeSettler(pool);
  const active = await makeActiveRuns({ workerId, bus, pool, logger });

  const files = makeAssetFiles({ pool, store, retentionDays: config.assetRetentionDays, logger });
  const assets = makeRunAssets({ files, pool, logger });

  const executor = { config, workerId, pool, bus, logger, settler, active, assets };
  const chat = makeChatTask(routes);
  const images = makeImageTask({
    routes,
    assets,
    signer: makeSigner(config),
    logger,
    concurrency: config.imageConcurrency,
    answerBytes: config.imageAnswerBytes,
  });
  const taskList: TaskList = {
    [chat.name]: makePaidTask(chat, executor),
    [images.name]: makePaidTask(images, executor),
    ...makeMaintenanceTasks(pool, store, logger),
  };
  let lastOutageAt = Number.NEGATIVE_INFINITY;
  const enginePool = makePatient(
    await makeEnginePool(databaseUrl, onError('an idle queue connection broke')),
    () => {
      lastOutageAt = Date.now();
    },
  );
  const engine = await startEngine({ config, enginePool, taskList, logger });
  const heartbeat = await startHeartbeat({
    pool,
    process: { id: workerId, kind: 'worker', poolId: engine.poolId },
    intervalMs: config.heartbeatSeconds * 1000,
    onError: onError('the heartbeat was not written'),
  });
  const rescue = every(
    config.heartbeatSeconds * 1000,
    makeRescue({ pool, enginePool, engine, lastOutageAt: () => lastOutageAt, config, logger }),
    logger,
  );

  return {
    shutdown: [
      {
        name: 'worker: finish what is under way',
        run: async () => {
          const cut = setTimeout(() => active.abortAll('stopping'), DRAIN_MS);
          await engine.stop();
          clearTimeout(cut);
        },
      },
      {
        name: 'worker: close',
        run: async () => {
          clearInterval(rescue);
          catalogue.close();
          active.close();
          await settler.drain();
          await heartbeat.stop();
          await notifications.close();
          await routes.close();
          await enginePool.end();
          await pool.end();
        },
      },
    ],
  };
}

/**
 * The jobs table is small and churns: its statistics are always wrong, and a plan that reads the whole table reads mostly
 * dead rows. The engine's statements are few and all have their index.
 */
const ENGINE_SETTINGS = [
  'synchronous_commit=off',
  'plan_cache_mode=force_generic_plan',
  'enable_seqscan=off',
  'enable_bitmapscan=off',
  'enable_hashjoin=off',
  'enable_mergejoin=off',
  'jit=off',
];

/**
 * The engine's own connections, as the owner of its tables. Its locks and completions need not survive a crash of the
 * database: a job that runs again finds its request ended, or ends it once (docs/decisions/0006-engine-commits.md).
 */
function makeEnginePool(databaseUrl: string, onError: (error: Error) => void): Promise<Pool> {
  const url = new URL(databaseUrl);
  url.searchParams.set('options', ENGINE_SETTINGS.map((setting) => `-c ${setting}`).join(' '));
  return makePool({
    databaseUrl: url.toString(),
    applicationName: 'svc-worker-queue',
    maxConnections: ENGINE_POOL_SIZE,
    onError,
  });
}

async function startEngine(options: {
  config: Config;
  enginePool: Pool;
  taskList: TaskList;
  logger: Logger;
}): Promise<Engine & { stop: () => Promise<void> }> {
  const { config, enginePool, taskList, logger } = options;
  const events = new EventEmitter() as WorkerEvents;
  let engine: WorkerPool | undefined;
  let localQueue: { readonly jobQueue: readonly { readonly id: string }[] } | undefined;
  let isStopping = false;
  events.on('pool:create', ({ workerPool }) => {
    engine = workerPool;
  });
  events.on('localQueue:init', (event) => {
    localQueue = event.localQueue;
  });
  const runner = await run({
    pgPool: enginePool,
    taskList,
    parsedCronItems: CRON_ITEMS,
    noHandleSignals: true,
    events,
    logger: engineLogger(logger),
    preset: {
      worker: {
        concurrentJobs: config.workerConcurrency,
        localQueue: { size: config.workerConcurrency },
        completeJobBatchDelay: COMPLETE_BATCH_DELAY_MS,
        pollInterval: 1000,
        gracefulShutdownAbortTimeout: DRAIN_MS,
      },
    },
  });
  const onEnd = (error?: unknown): void => {
    if (error === undefined && isStopping) return;
    logger.fatal({ err: error }, 'the queue engine stopped');
    process.exit(1);
  };
  runner.promise.then(() => onEnd(), onEnd);
  return {
    poolId: engine?.id ?? '',
    knownJobs: () =>
      [
        ...(engine?._workers ?? []).map((worker) => worker.getActiveJob()?.id),
        ...(localQueue?.jobQueue ?? []).map((job) => job.id),
      ].filter((id) => id !== undefined),
    stop: () => {
      isStopping = true;
      return runner.stop();
    },
  };
}

/** It wants a connection a job; with its local queue jobs share a few. */
const POOL_SIZE_ADVICE = /maxPoolSize .* smaller than concurrency/;

/** The engine logs every job at `info`: at 1,000 a second that is noise, and payloads must never be logged. */
function engineLogger(logger: Logger): EngineLogger {
  return new EngineLogger(() => (level, message) => {
    if (level === 'error') logger.error({ engine: message }, 'queue engine');
    else if (level === 'warning' && !POOL_SIZE_ADVICE.test(message))
      logger.warn({ engine: message }, 'queue engine');
  });
}
