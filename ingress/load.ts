/**
 * How much is waiting in the whole service, looked at once a second, so that a queue nobody could work off is refused at the
 * door instead of timing out inside.
 */
import type { Pool } from '../core/database.ts';
import { ServiceError } from '../core/errors.ts';

const INTERVAL_MS = 1000;

/** Open holds are exactly the requests waiting or running. */
const READ_LOAD = {
  name: 'read_load',
  text: `select (select count(*) from app.holds) as depth,
    (select count(*) from app.processes p where p.kind = 'worker' and p.beat_at > now() - make_interval(secs => $1)) as workers`,
};

export interface Load {
  readonly depth: number;
  readonly workers: number;
  /** When the figures were read; undefined while the database does not answer. */
  readonly readAt: Date | undefined;
  /** Throws `generation_failed` while the queue is too deep. */
  refuseWhenTooDeep(): void;
  refresh(): Promise<void>;
  close(): void;
}

export function makeLoad(options: { pool: Pool; maxQueueDepth: number; deadAfterSeconds: number }): Load {
  let depth = 0;
  let workers = 0;
  let readAt: Date | undefined;
  let isReading = false;

  async function refresh(): Promise<void> {
    if (isReading) return;
    isReading = true;
    try {
      const { rows } = await options.pool.query<{ depth: number; workers: number }>({
        ...READ_LOAD,
        values: [options.deadAfterSeconds],
      });
      depth = rows[0]?.depth ?? 0;
      workers = rows[0]?.workers ?? 0;
      readAt = new Date();
    } catch {
      readAt = undefined; // said by /health; a request will meet the fault itself
    } finally {
      isReading = false;
    }
  }
  const timer = setInterval(() => void refresh(), INTERVAL_MS);
  timer.unref();

  return {
    get depth() {
      return depth;
    },
    get workers() {
      return workers;
    },
    get readAt() {
      return readAt;
    },
    refuseWhenTooDeep() {
      if (depth >= options.maxQueueDepth)
        throw new ServiceError('generation_failed', {}, { retryAfterSeconds: 5 });
    },
    refresh,
    close() {
      clearInterval(timer);
    },
  };
}
