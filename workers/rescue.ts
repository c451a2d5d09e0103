/**
 * Takes up what the dead left: jobs of silent workers, jobs nobody runs, holds past their deadline. Every worker does it; one
 * at a time works.
 */
import type { Config } from '../core/config.ts';
import { isConnectionError, type Pool } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';

export interface Engine {
  /** The name its jobs are locked by. */
  readonly poolId: string;
  /** The jobs it runs, or has fetched to run. */
  knownJobs(): readonly string[];
}

/** Jobs of no worker on the list are looked for this often. */
const ORPHANS_EVERY_MS = 5000;
/** After an outage the engine's own jobs are compared with what it knows, this long. */
const FORGOTTEN_WITHIN_MS = 60_000;
/** Younger locks may belong to a fetch whose answer is on its way. */
const FORGOTTEN_AGE_SECONDS = 5;

export function makeRescue(options: {
  pool: Pool;
  /** As the owner of the queue's tables. */
  enginePool: Pool;
  engine: Engine;
  /** When a statement of the engine was last lost. */
  lastOutageAt: () => number;
  config: Pick<Config, 'deadAfterSeconds'>;
  logger: Logger;
}): () => Promise<void> {
  const { pool, enginePool, engine, logger } = options;
  const silenceSeconds = options.config.deadAfterSeconds;
  const silenceMs = silenceSeconds * 1000;
  // while the database was away nobody's heart could be heard: silence counts from when this process began to listen
  let listeningSince = Date.now();
  let lastHeardAt = Date.now();
  let lastOrphansAt = 0;

  async function reap(): Promise<void> {
    if (Date.now() - listeningSince < silenceMs) return;
    const text = 'select app.reap_processes(make_interval(secs => $1)) as count';
    const what = 'silent processes were taken off the list, their jobs run again';
    await count(pool, text, [silenceSeconds], what);
  }

  async function expire(): Promise<void> {
    const text = 'select count(*) as count from app.expire_holds()';
    await count(pool, text, [], 'holds past their deadline were voided');
  }

  async function freeOrphans(): Promise<void> {
    if (Date.now() - lastOrphansAt < ORPHANS_EVERY_MS) return;
    const text = 'select app.free_orphaned_jobs(make_interval(secs => $1)) as count';
    await count(enginePool, text, [silenceSeconds], 'jobs of unknown workers were freed');
    lastOrphansAt = Date.now();
  }

  async function freeForgotten(): Promise<void> {
    if (Date.now() - options.lastOutageAt() >= FORGOTTEN_WITHIN_MS) return;
    const text = 'select app.free_forgotten_jobs($1, $2::bigint[], make_interval(secs => $3)) as count';
    const values = [engine.poolId, engine.knownJobs(), FORGOTTEN_AGE_SECONDS];
    await count(enginePool, text, values, 'jobs forgotten in an outage of the database were freed');
  }

  /** A step that fails keeps none of the others from being taken. */
  async function rescue(): Promise<void> {
    const faults: unknown[] = [];
    for (const step of [reap, expire, freeOrphans, freeForgotten]) {
      await step().catch((error: unknown) => faults.push(error));
    }
    if (faults.length > 0) throw faults.find(isConnectionError) ?? faults[0];
  }

  async function count(from: Pool, text: string, values: readonly unknown[], what: string): Promise<void> {
    const { rows } = await from.query<{ count: number }>(text, [...values]);
    const found = rows[0]?.count ?? 0;
    if (found > 0) logger.warn({ count: found }, what);
  }

  return async () => {
    // this process itself was frozen
    if (Date.now() - lastHeardAt > silenceMs) listeningSince = Date.now();
    try {
      await rescue();
      lastHeardAt = Date.now();
    } catch (error) {
      if (isConnectionError(error)) listeningSince = Date.now();
      throw error;
    }
  };
}
