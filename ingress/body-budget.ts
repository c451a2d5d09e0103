/**
 * How much of large request bodies one ingress has in memory at once. A body waits, unread in its socket, first until its caller
 * has few others under way, then until there is room; whoever is let in has to send, and gives the room back when it is done with
 * the bytes. Callers without a key share a room of their own. Small bodies pass.
 */
import { ByteSemaphore, type Release } from '../core/byte-semaphore.ts';
import { ServiceError } from '../core/errors.ts';
import { TransientMap } from '../core/transient-map.ts';
import { networkOf } from './client-network.ts';
import type { Context } from './context.ts';

export interface BodyBudget {
  /**
   * Runs `work`, which reads the body, once there is room for it: `maxBytes`, or less where its length is said. Throws
   * `invalid_parameter` when it says that it is longer or (408) comes too slowly, `generation_failed` with `Retry-After` when there
   * is no room for long.
   */
  withRoom<T>(ctx: Context, maxBytes: number, work: () => Promise<T>): Promise<T>;
  readonly freeBytes: { readonly keyed: number; readonly keyless: number };
}

/** How fast a body has to come while it takes room: on average since it was let in. */
export interface Pace {
  readonly bytesPerSecond: number;
  readonly graceMs: number;
  readonly checkEveryMs: number;
}

export interface BodyBudgetOptions {
  /** For callers with a key, by account. */
  readonly keyedBytes: number;
  /** For the others, by client address. */
  readonly keylessBytes: number;
  readonly patienceMs?: number;
  readonly pace?: Pace;
}

/** Bodies up to this never wait: hundreds of them weigh as much as one picture. */
const SMALL_BODY_BYTES = 64 * 1024;
/** Longer than a body takes to arrive over a usual line, shorter than callers' own patience. */
const PATIENCE_MS = 30_000;
const RETRY_AFTER_SECONDS = 5;
/** Half a megabit: what does not reach that would hold its room for minutes. */
const PACE: Pace = { bytesPerSecond: 64 * 1024, graceMs: 5000, checkEveryMs: 1000 };
/** Of one caller at once; together at most half the room, or one body. */
const MOST_KEYED_BODIES = 16;
const MOST_KEYLESS_BODIES = 2;

export function makeBodyBudget(options: BodyBudgetOptions): BodyBudget {
  const { patienceMs = PATIENCE_MS, pace = PACE } = options;
  const keyed = makeRoom(options.keyedBytes, MOST_KEYED_BODIES);
  const keyless = makeRoom(options.keylessBytes, MOST_KEYLESS_BODIES);

  async function letIn(ctx: Context, bytes: number): Promise<Release> {
    const { caller } = ctx.state;
    const patience = waitFor(ctx, patienceMs);
    try {
      return caller === undefined
        ? await keyless.take(networkOf(ctx.ip), bytes, patience.over)
        : await keyed.take(caller.accountId, bytes, patience.over);
    } catch (error) {
      // what is still on its way will not be read: the connection ends with the answer
      ctx.set('Connection', 'close');
      throw error;
    } finally {
      patience.end();
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
      const release = await letIn(ctx, length);
      const watch = watchPace(ctx, pace);
      try {
        return await Promise.race([work(), watch.tooSlow]);
      } finally {
        watch.end();
        release();
      }
    },
    get freeBytes() {
      return { keyed: keyed.freeBytes, keyless: keyless.freeBytes };
    },
  };
}

/** A room and who is in it, or waits for it. */
function makeRoom(totalBytes: number, mostBodies: number) {
  const room = new ByteSemaphore(totalBytes);
  const mostOfCaller = totalBytes / 2;
  const callers = new TransientMap<{ readonly share: ByteSemaphore; bodies: number }>();

  return {
    /** First the caller's own share: bodies that wait for it keep nobody else waiting. */
    async take(name: string, bytes: number, givenUp: Promise<never>): Promise<Release> {
      const caller = callers.get(name) ?? { share: new ByteSemaphore(mostOfCaller), bodies: 0 };
      callers.set(name, caller);
      caller.bodies += 1;
      const leave = (): void => {
        caller.bodies -= 1;
        if (caller.bodies === 0) callers.delete(name);
      };
      let releaseShare: Release | undefined;
      try {
        releaseShare = await caller.share.acquire(Math.max(bytes, mostOfCaller / mostBodies), givenUp);
        const releaseRoom = await room.acquire(bytes, givenUp);
        return () => {
          releaseRoom();
          releaseShare?.();
          leave();
        };
      } catch (error) {
        releaseShare?.();
        leave();
        throw error;
      }
    },
    get freeBytes() {
      return room.freeBytes;
    },
  };
}

/** `over` rejects when the caller has waited long enough, or left. */
function waitFor(ctx: Context, patienceMs: number): { over: Promise<never>; end: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {}); // who waits for nothing any more does not hear it
  // nobody hears it
  const leave = (): void => reject(new ServiceError('invalid_json'));
  const timer = setTimeout(() => {
    reject(new ServiceError('generation_failed', {}, { retryAfterSeconds: RETRY_AFTER_SECONDS }));
  }, patienceMs);
  ctx.res.once('close', leave);
  if (ctx.res.destroyed) leave();
  return {
    over: promise,
    end: () => {
      clearTimeout(timer);
      ctx.res.off('close', leave);
    },
  };
}

/** `tooSlow` rejects when the body falls behind its pace. The connection ends with the answer, and what had come of it is let go. */
function watchPace(ctx: Context, pace: Pace): { tooSlow: Promise<never>; end: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const { req } = ctx;
  const { socket } = req;
  const length = Number(req.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  const readBefore = socket.bytesRead - req.readableLength;
  let elapsedMs = 0;
  const timer = setInterval(() => {
    if (req.complete) {
      clearInterval(timer);
      return;
    }
    // by ticks and not by the clock: while this process was busy it could not read either
    elapsedMs += pace.checkEveryMs;
    if (elapsedMs < pace.graceMs) return;
    const due = Math.min(length, (pace.bytesPerSecond * elapsedMs) / 1000);
    if (socket.bytesRead - readBefore >= due) return;
    ctx.set('Connection', 'close');
    reject(new ServiceError('invalid_parameter', { param: 'body', reason: 'too_slow' }, { status: 408 }));
  }, pace.checkEveryMs);
  return { tooSlow: promise, end: () => clearInterval(timer) };
}
