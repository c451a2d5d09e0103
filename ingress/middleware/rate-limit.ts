/**
 * Check 4: requests per minute and key, counted in Redis so that every ingress counts together; when Redis does not answer,
 * each process counts for itself until it does. Every keyed response carries the RateLimit fields
 * (draft-ietf-httpapi-ratelimit-headers).
 */
import { Redis } from 'ioredis';
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
} from 'rate-limiter-flexible';
import { ServiceError } from '../../core/errors.ts';
import { callerOf, type Middleware, type RateState } from '../context.ts';
import type { Caller } from '../key-cache.ts';

const WINDOW_SECONDS = 60;

export interface RateLimiter {
  count(caller: Pick<Caller, 'keyId' | 'ratePerMinute'>): Promise<RateState>;
  close(): Promise<void>;
}

export function makeRateLimiter(redisUrl: string | undefined, onError: (error: Error) => void): RateLimiter {
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

  // one limiter a rate: rates are few (the default and what operators set)
  const limiters = new Map<number, RateLimiterAbstract>();
  function limiterFor(rate: number): RateLimiterAbstract {
    let limiter = limiters.get(rate);
    if (limiter === undefined) {
      const options = { points: rate, duration: WINDOW_SECONDS, keyPrefix: `svc:rate:${rate}` };
      const memory = new RateLimiterMemory(options);
      limiter =
        redis === undefined
          ? memory
          : new RateLimiterRedis({ ...options, storeClient: redis, insuranceLimiter: memory });
      limiters.set(rate, limiter);
    }
    return limiter;
  }

  return {
    async count({ keyId, ratePerMinute }) {
      let result: RateLimiterRes;
      let isAllowed = true;
      try {
        result = await limiterFor(ratePerMinute).consume(keyId);
      } catch (refusal) {
        if (!(refusal instanceof RateLimiterRes)) throw refusal;
        result = refusal;
        isAllowed = false;
      }
      return {
        isAllowed,
        limit: ratePerMinute,
        remaining: Math.max(result.remainingPoints, 0),
        resetSeconds: Math.max(Math.ceil(result.msBeforeNext / 1000), 0),
      };
    },
    async close() {
      redis?.disconnect();
      await Promise.resolve();
    },
  };
}

/** Counts a keyed request as soon as its key is known, so that also those refused by checks 2 and 3 carry the rate fields. */
export function countRate(limiter: RateLimiter): Middleware {
  return async (ctx, next) => {
    const state = await limiter.count(callerOf(ctx));
    ctx.set('RateLimit-Policy', `"default";q=${state.limit};w=${WINDOW_SECONDS}`);
    ctx.set('RateLimit', `"default";r=${state.remaining};t=${state.resetSeconds}`);
    ctx.state.rate = state;
    await next();
  };
}

/** Ends the request with 429 when its key has used up the minute. */
export const refuseOverRate: Middleware = (ctx, next) => {
  const { rate } = ctx.state;
  if (rate === undefined) throw new Error('refuseOverRate stands behind countRate');
  if (!rate.isAllowed) {
    throw new ServiceError('rate_limited', {}, { retryAfterSeconds: Math.max(rate.resetSeconds, 1) });
  }
  return next() as Promise<void>;
};
