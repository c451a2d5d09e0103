/**
 * The requests this process is running: where aborts and acknowledgements find them, and what is regularly asked about them.
 */
import { LRUCache } from 'lru-cache';
import type { Pool } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import type { Bus } from '../core/relay/bus.ts';
import { ALL_WORKERS_CHANNEL, type Frame, processChannel } from '../core/relay/frames.ts';
import { TransientMap } from '../core/transient-map.ts';
import { findLiveIngresses, findLost, markRunning } from './data/requests.ts';
import type { AbortCause, Run } from './run.ts';

export interface ActiveRuns {
  add(run: Run): void;
  delete(run: Run): void;
  /** The run of this request that is under way here. */
  find(id: string): Run | undefined;
  abortAll(cause: AbortCause): void;
  readonly size: number;
  close(): void;
}

/** Requests that are done sooner are never said to be running: most chats save a write. */
const MARK_AFTER_MS = 200;
const WATCH_MS = 2000;
const MAX_EARLY_ABORTS = 10_000;
const EARLY_ABORT_MS = 60_000;

export async function makeActiveRuns(options: {
  workerId: string;
  bus: Bus;
  pool: Pool;
  logger: Logger;
}): Promise<ActiveRuns> {
  const { bus, pool, logger } = options;
  const runs = new TransientMap<Run>();

  // an abort may overtake its job: it is kept for the moment the job begins
  const early = new LRUCache<string, true>({ max: MAX_EARLY_ABORTS, ttl: EARLY_ABORT_MS });

  const hear = (frame: Frame): void => {
    const run = runs.get(frame.id);
    if (frame.kind === 'abort') {
      if (run === undefined) early.set(frame.id, true);
      else run.abort('client_gone');
    } else if (frame.kind === 'taken') run?.taken(frame.bytes);
  };
  await bus.subscribe(processChannel(options.workerId), hear);
  await bus.subscribe(ALL_WORKERS_CHANNEL, hear);

  async function mark(): Promise<void> {
    const begunBefore = Date.now() - MARK_AFTER_MS;
    const unmarked = runs.values().filter((run) => !run.isMarked && run.startedAt.getTime() < begunBefore);
    if (unmarked.length === 0) return;
    for (const run of unmarked) run.isMarked = true;
    try {
      await markRunning(
        pool,
        unmarked.map((run) => run.id),
      );
    } catch (error) {
      for (const run of unmarked) run.isMarked = false; // said again as soon as the database listens
      throw error;
    }
  }

  /** Stops what was ended elsewhere. A stream whose ingress died goes on without a reader: its caller collects it. */
  async function watch(): Promise<void> {
    const old = runs.values().filter((run) => run.startedAt.getTime() < Date.now() - WATCH_MS);
    if (old.length === 0) return;
    for (const id of await findLost(
      pool,
      old.map((run) => run.id),
    ))
      runs.get(id)?.abort('lost');
    const streams = old.filter((run) => run.payload.isStream && run.payload.ingressId !== null);
    if (streams.length === 0) return;
    const ingresses = [...new Set(streams.flatMap((run) => run.payload.ingressId ?? []))];
    const live = await findLiveIngresses(pool, ingresses);
    for (const run of streams) if (!live.has(run.payload.ingressId ?? '')) run.detach();
  }

  const timers = [every(MARK_AFTER_MS, mark, logger), every(WATCH_MS, watch, logger)];
  return {
    add: (run) => {
      runs.set(run.id, run);
      if (early.delete(run.id)) run.abort('client_gone');
    },
    delete: (run) => {
      if (runs.get(run.id) === run) runs.delete(run.id);
    },
    find: (id) => runs.get(id),
    abortAll(cause) {
      for (const run of runs.values()) run.abort(cause);
    },
    get size() {
      return runs.size;
    },
    close() {
      for (const timer of timers) clearInterval(timer);
    },
  };
}

/** Runs `work` at an interval, never twice at once; failures are logged and tried again next time. */
export function every(intervalMs: number, work: () => Promise<void>, logger: Logger): NodeJS.Timeout {
  let isWorking = false;
  const timer = setInterval(() => {
    if (isWorking) return;
    isWorking = true;
    work()
      .catch((error: unknown) => logger.warn({ err: error }, 'a regular check failed'))
      .finally(() => {
        isWorking = false;
      });
  }, intervalMs);
  timer.unref();
  return timer;
}
