/**
 * Counts within windows of time, in Redis so that every ingress counts together; when Redis does not answer, each process counts
 * for itself until it does. What is counted, and what follows, is the middleware's to say.
 */
import { Redis } from 'ioredis';
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
} from 'rate-limiter-flexible';
import type { RateState } from './context.ts';

export interface Counter {
  count(key: string): Promise<RateState>;
}

export interface Counters {
  /** `name` begins its keys in Redis. */
  make(options: { name: string; limit: number; windowSeconds: number }): Counter;
  /**
   * A value that the first ingress to ask for it sets for all, kept for so long; undefined while Redis does not answer or where
   * there is none.
   */
  agreeOn(name: string, proposal: string, seconds: number): Promise<string | undefined>;
  close(): void;
}

export function makeCounters(redisUrl: string | undefined, onError: (error: Error) => void): Counters {
  const redis =
    redisUrl === undefined
      ? undefined
      : new Redis(redisUrl, {
          enableOfflineQueue: false,
          enableAutoPipelining: true, // requests of one turn of the event loop share a write
          maxRetriesPerRequest: 0,
          connectTimeout: 3000,
          commandTimeout: 500,
          retryStrategy: (attempt) => Math.min(50 * attempt, 1000),
        });
  redis?.on('error', onError);

  return {
    make({ name, limit, windowSeconds }) {
      const options = { points: limit, duration: windowSeconds, keyPrefix: name };
      const memory = new RateLimiterMemory(options);
      const limiter =
        redis === undefined
          ? memory
          : new RateLimiterRedis({ ...options, storeClient: redis, insuranceLimiter: memory });
      return { count: (key) => count(limiter, key, limit) };
    },
    async agreeOn(name, proposal, seconds) {
      try {
        const set = await redis?.set(name, proposal, 'EX', seconds, 'NX');
        return set === 'OK' ? proposal : ((await redis?.get(name)) ?? undefined);
      } catch {
        return undefined; // said by onError
      }
    },
    close: () => redis?.disconnect(),
  };
}

async function count(limiter: RateLimiterAbstract, key: string, limit: number): Promise<RateState> {
  let result: RateLimiterRes;
  let isAllowed = true;
  try {
    result = await limiter.consume(key);
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    result = refusal;
    isAllowed = false;
  }
  return {
    isAllowed,
    limit,
    remaining: Math.max(result.remainingPoints, 0),
    resetSeconds: Math.max(Math.ceil(result.msBeforeNext / 1000), 0),
  };
}
