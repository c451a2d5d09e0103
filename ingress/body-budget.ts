/**
 * How much of large request bodies one ingress has in memory at once. A body waits, unread in its socket, until there is room for
 * it; whoever is let in gives the room back when it is done with the bytes. Small bodies pass.
 */
import { ByteSemaphore } from '../core/byte-semaphore.ts';
import { ServiceError } from '../core/errors.ts';
import type { Context } from './context.ts';

export interface BodyBudget {
  /**
   * Runs `work` once there is room for the body, which must not be read before: `maxBytes`, or less where its length is said. Throws
   * `invalid_parameter` when it says that it is longer, `generation_failed` with `Retry-After` when there is no room for long.
   */
  withRoom<T>(ctx: Context, maxBytes: number, work: () => Promise<T>): Promise<T>;
  readonly freeBytes: number;
}

/** Bodies up to this never wait: hundreds of them weigh as much as one picture. */
const SMALL_BODY_BYTES = 64 * 1024;
/** Longer than a body takes to arrive over a usual line, shorter than callers' own patience. */
const PATIENCE_MS = 30_000;
const RETRY_AFTER_SECONDS = 5;

export function makeBodyBudget(totalBytes: number, patienceMs = PATIENCE_MS): BodyBudget {
  const room = new ByteSemaphore(totalBytes);

  async function waitForRoom(ctx: Context, bytes: number): Promise<() => void> {
    const acquiring = room.acquire(bytes);
    const left = Promise.withResolvers<never>();
    // nobody hears it
    const leave = (): void => left.reject(new ServiceError('invalid_json'));
    const timer = setTimeout(() => {
      left.reject(new ServiceError('generation_failed', {}, { retryAfterSeconds: RETRY_AFTER_SECONDS }));
    }, patienceMs);
    ctx.res.once('close', leave);
    if (ctx.res.destroyed) leave();
    try {
      return await Promise.race([acquiring, left.promise]);
    } catch (error) {
      // a place in the queue cannot be given up: when its turn comes it is passed on
      void acquiring.then((release) => release());
      // what is still on its way will not be read: the connection ends with the answer
      ctx.set('Connection', 'close');
      throw error;
    } finally {
      clearTimeout(timer);
      ctx.res.off('close', leave);
    }
  }

  return {
    async withRoom(ctx, maxBytes, work) {
      const length = Number(ctx.headers['content-length'] ?? maxBytes);
      if (length > maxBytes) {
        ctx.set('Connection', 'close');
        throw new ServiceError('invalid_parameter', { param: 'body', max_bytes: maxBytes });
      }
      if (length <= SMALL_BODY_BYTES) return await work();
      const release = await waitForRoom(ctx, length);
      try {
        return await work();
      } finally {
        release();
      }
    },
    get freeBytes() {
      return room.freeBytes;
    },
  };
}
