/**
 * A pool for the queue engine, which does not survive an outage of the database by itself: it stops when it cannot note a
 * finished job, ends the process when it cannot note a failed one, and never fetches again when its first look at the task
 * names fails. Its statements can all be run twice, so here each waits until the database is back.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { isConnectionError, type Pool } from '../core/database.ts';

const RETRY_DELAY_MS = 250;

/** `onOutage`: a statement was lost, and nobody knows whether it was committed. */
export function makePatient(pool: Pool, onOutage: () => void): Pool {
  const connectOnce = pool.connect.bind(pool) as {
    (): Promise<PoolClient>;
    (callback: Parameters<Pool['connect']>[0]): void;
  };

  async function connect(): Promise<PoolClient> {
    for (;;) {
      try {
        return await connectOnce();
      } catch (error) {
        await outage(error);
      }
    }
  }

  /** Throws what waiting cannot cure. */
  async function outage(error: unknown): Promise<void> {
    if (!isConnectionError(error) || pool.ending) throw error;
    onOutage();
    await sleep(RETRY_DELAY_MS);
  }

  async function lease(): Promise<Pick<PoolClient, 'query' | 'release'>> {
    let client: PoolClient | undefined = await connect();
    let isInTransaction = false;
    const query = async (...args: Parameters<PoolClient['query']>): Promise<unknown> => {
      if (args[0] === ('begin' as unknown)) isInTransaction = true; // its migrations, at start: they fail whole
      for (;;) {
        client ??= await connect();
        try {
          return await ask(client, args);
        } catch (error) {
          if (isInTransaction) throw error;
          if (isConnectionError(error)) {
            client.release(true);
            client = undefined;
          }
          await outage(error);
        }
      }
    };
    return {
      query: query as PoolClient['query'],
      release: (destroy) => client?.release(destroy),
    };
  }

  // with a callback it is the pool's own `query` that asks, which throws what it meets
  const connectPatiently = (callback?: Parameters<Pool['connect']>[0]) =>
    callback === undefined ? lease() : connectOnce(callback);
  return Object.assign(pool, { connect: connectPatiently as Pool['connect'] });
}

/**
 * With a callback of ours: what the driver makes instead, a promise with a handler of its own, keeps results alive from one
 * collection to the next (docs/decisions/0023-what-outlives-its-request.md).
 */
function ask(client: PoolClient, args: Parameters<PoolClient['query']>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const query = client.query.bind(client) as (...args: unknown[]) => void;
    query(...args, (error: Error | null, result: unknown) => {
      if (error) reject(error);
      else resolve(result);
    });
  });
}
