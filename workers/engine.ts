/**
 * The queue engine of one worker: a runner for each lane, so that heavy jobs, which wait for their turn and hold files, never take the
 * slots of light ones. To the database all are one pool: heartbeats, rescue and leaving know it by one name.
 */
import { EventEmitter } from 'node:events';
import {
  Logger as EngineLogger,
  type ParsedCronItem,
  run,
  type TaskList,
  type WorkerEvents,
  type WorkerPool,
} from 'graphile-worker';
import { makePool, type Pool } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import type { Announcements } from './announcements.ts';
import type { Engine } from './rescue.ts';

/** A task's name is in one lane only. */
export interface Lane {
  readonly taskList: TaskList;
  /** Jobs at once. */
  readonly concurrency: number;
  /** Jobs fetched at once; as many may lie here, unseen by other workers, while all slots are taken. */
  readonly fetchSize: number;
  /** After a fetch that found nothing: no other for about this long, however many jobs are announced without saying whose. */
  readonly refetchDelayMs?: number;
  readonly cronItems: readonly ParsedCronItem[];
}

/** Fetching and finishing, of three lanes that are seldom busy together. */
const ENGINE_POOL_SIZE = 5;
/** The engine notes finished jobs together, this long after the first; the caller's answer does not wait for it. */
const COMPLETE_BATCH_DELAY_MS = 25;

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
export function makeEnginePool(databaseUrl: string, onError: (error: Error) => void): Promise<Pool> {
  const url = new URL(databaseUrl);
  url.searchParams.set('options', ENGINE_SETTINGS.map((setting) => `-c ${setting}`).join(' '));
  return makePool({
    databaseUrl: url.toString(),
    applicationName: 'svc-worker-queue',
    maxConnections: ENGINE_POOL_SIZE,
    onError,
  });
}

export interface EngineOptions {
  readonly poolId: string;
  readonly enginePool: Pool;
  readonly announcements: Announcements;
  readonly lanes: readonly Lane[];
  /** How long jobs may finish after a stop. */
  readonly drainMs: number;
  readonly logger: Logger;
}

export async function startEngine(options: EngineOptions): Promise<Engine & { stop: () => Promise<void> }> {
  const runners: Awaited<ReturnType<typeof startLane>>[] = [];
  // one after the other: the first brings the engine's tables up to date
  for (const lane of options.lanes) runners.push(await startLane(lane, options));
  return {
    poolId: options.poolId,
    knownJobs: () => runners.flatMap((runner) => runner.knownJobs()),
    stop: async () => {
      await Promise.all(runners.map((runner) => runner.stop()));
    },
  };
}

async function startLane(lane: Lane, options: EngineOptions) {
  const { poolId, enginePool, announcements, drainMs, logger } = options;
  const events = new EventEmitter() as WorkerEvents;
  let engine: WorkerPool | undefined;
  let localQueue: { readonly jobQueue: readonly { readonly id: string }[] } | undefined;
  let isStopping = false;
  events.on('pool:create', ({ workerPool }) => {
    engine = workerPool;
    // before it fetches anything: the name its jobs are locked by
    workerPool.id = poolId;
  });
  events.on('localQueue:init', (event) => {
    localQueue = event.localQueue;
  });
  const { concurrency, fetchSize, refetchDelayMs } = lane;
  const runner = await run({
    pgPool: announcements.poolFor(enginePool, Object.keys(lane.taskList)),
    taskList: lane.taskList,
    parsedCronItems: [...lane.cronItems],
    noHandleSignals: true,
    events,
    logger: engineLogger(logger),
    preset: {
      worker: {
        concurrentJobs: concurrency,
        localQueue: {
          size: fetchSize,
          ...(refetchDelayMs === undefined
            ? {}
            : { refetchDelay: { durationMs: refetchDelayMs, maxAbortThreshold: Number.MAX_SAFE_INTEGER } }),
        },
        completeJobBatchDelay: COMPLETE_BATCH_DELAY_MS,
        pollInterval: 1000,
        gracefulShutdownAbortTimeout: drainMs,
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

/** It wants a connection a job, and as many jobs fetched as there are slots; with its local queue jobs share a few. */
const SIZE_ADVICE = /maxPoolSize .* smaller than concurrency|job batch size .* smaller than your concurrency/;

/** The engine logs every job at `info`: at 1,000 a second that is noise, and payloads must never be logged. */
function engineLogger(logger: Logger): EngineLogger {
  return new EngineLogger(() => (level, message) => {
    if (level === 'error') logger.error({ engine: message }, 'queue engine');
    else if (level === 'warning' && !SIZE_ADVICE.test(message))
      logger.warn({ engine: message }, 'queue engine');
  });
}
