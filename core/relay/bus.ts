/**
 * The carrier of frames: Redis pub/sub between processes, or memory within one. Delivery is at most once; `isConnected` says
 * whether anything gets through at all, and `onGap` fires when frames may have been lost.
 */
import { EventEmitter } from 'node:events';
import { Redis } from 'ioredis';
import type { Frame } from './frames.ts';

export interface Bus {
  /** Never throws and never waits: what cannot be sent is lost. */
  publish(channel: string, frame: Frame): void;
  subscribe(channel: string, handler: (frame: Frame) => void): Promise<void>;
  readonly isConnected: boolean;
  onGap(listener: () => void): void;
  close(): Promise<void>;
}

/** For ingress and worker in one process. */
export function makeLocalBus(): Bus {
  const emitter = new EventEmitter();
  emitter.setMaxListeners(0);
  return {
    publish(channel, frame) {
      emitter.emit(channel, frame);
    },
    subscribe(channel, handler) {
      emitter.on(channel, handler);
      return Promise.resolve();
    },
    isConnected: true,
    onGap() {},
    close() {
      emitter.removeAllListeners();
      return Promise.resolve();
    },
  };
}

/**
 * A message costs Redis, the kernel and both ends more than a frame in it: under load messages leave this far apart, and all
 * frames in between share one (measured with 50 streams: 15 % of a worker's time). A frame after a quiet moment leaves at once, and so
 * does the end of a request: those that were settled together share a message anyway, and each is somebody's wait.
 */
const MESSAGE_INTERVAL_MS = 1;

/**
 * Redis pub/sub. Frames published at one moment to one channel travel together. Throws one line, without the password, when
 * Redis is away at the start; later it is connected to again.
 */
export async function makeRedisBus(redisUrl: string, onError: (error: Error) => void): Promise<Bus> {
  const publisher = new Redis(redisUrl, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 3000,
    retryStrategy: reconnectDelayMs,
  });
  const subscriber = new Redis(redisUrl, {
    lazyConnect: true,
    connectTimeout: 3000,
    maxRetriesPerRequest: null,
    retryStrategy: reconnectDelayMs,
  });
  const handlers = new Map<string, (frame: Frame) => void>();
  const gapListeners: (() => void)[] = [];
  let outgoing = new Map<string, Frame[]>();
  let sentAt = 0;
  let isLeavingNow = false;

  subscriber.on('message', (channel: string, message: string) => {
    const handler = handlers.get(channel);
    if (handler === undefined) return;
    for (const frame of JSON.parse(message) as Frame[]) handler(frame);
  });
  // ioredis subscribes again by itself; what was published in between is lost
  subscriber.on('close', gap);
  subscriber.on('ready', gap);
  publisher.on('close', gap);

  function gap(): void {
    for (const listener of gapListeners) listener();
  }

  function flush(): void {
    if (outgoing.size === 0) return; // left with what was in more of a hurry
    const batch = outgoing;
    outgoing = new Map();
    sentAt = performance.now();
    isLeavingNow = false;
    for (const [channel, frames] of batch) {
      publisher.publish(channel, JSON.stringify(frames)).catch(onError);
    }
  }

  await connect([publisher, subscriber], redisUrl);
  for (const client of [publisher, subscriber]) client.on('error', onError);
  return {
    publish(channel, frame) {
      if (publisher.status !== 'ready') return;
      const mayWait = frame.kind !== 'finished' && performance.now() - sentAt < MESSAGE_INTERVAL_MS;
      if (!mayWait && !isLeavingNow) {
        isLeavingNow = true;
        setImmediate(flush);
      } else if (outgoing.size === 0) setTimeout(flush, MESSAGE_INTERVAL_MS);
      const frames = outgoing.get(channel);
      if (frames === undefined) outgoing.set(channel, [frame]);
      else frames.push(frame);
    },
    async subscribe(channel, handler) {
      handlers.set(channel, handler);
      await subscriber.subscribe(channel);
    },
    get isConnected() {
      return publisher.status === 'ready' && subscriber.status === 'ready';
    },
    onGap(listener) {
      gapListeners.push(listener);
    },
    async close() {
      flush();
      await Promise.allSettled([publisher.quit(), subscriber.quit()]);
      publisher.disconnect();
      subscriber.disconnect();
    },
  };
}

/** What ioredis rejects with says nothing but that the connection is closed: the reason is in the event before. */
async function connect(clients: readonly Redis[], redisUrl: string): Promise<void> {
  let reason: NodeJS.ErrnoException | undefined;
  const note = (error: Error): void => {
    reason ??= error;
  };
  for (const client of clients) client.on('error', note);
  try {
    await Promise.all(clients.map((client) => client.connect()));
  } catch (error) {
    for (const client of clients) client.disconnect();
    const cause = reason ?? (error as NodeJS.ErrnoException);
    const host = URL.parse(redisUrl)?.host || 'its host';
    throw new Error(`Redis at REDIS_URL (${host}) cannot be reached: ${cause.code ?? cause.message}`, {
      cause,
    });
  }
  for (const client of clients) client.off('error', note);
}

function reconnectDelayMs(attempt: number): number {
  return Math.min(50 * attempt, 1000);
}
