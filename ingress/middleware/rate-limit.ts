/**
 * Check 4: requests per minute and key. Every keyed response carries the RateLimit fields
 * (draft-ietf-httpapi-ratelimit-headers).
 */
import { ServiceError } from '../../core/errors.ts';
import { callerOf, type Middleware, type RateState } from '../context.ts';
import type { Counter, Counters } from '../counters.ts';
import type { Caller } from '../key-cache.ts';

const WINDOW_SECONDS = 60;

export interface RateLimiter {
  count(caller: Pick<Caller, 'keyId' | 'ratePerMinute'>): Promise<RateState>;
}

export function makeRateLimiter(counters: Counters): RateLimiter {
  // one counter a rate: rates are few (the default and what operators set)
  const byRate = new Map<number, Counter>();
  return {
    count({ keyId, ratePerMinute }) {
      let counter = byRate.get(ratePerMinute);
      if (counter === undefined) {
        const name = `svc:rate:${ratePerMinute}`;
        counter = counters.make({ name, limit: ratePerMinute, windowSeconds: WINDOW_SECONDS });
        byRate.set(ratePerMinute, counter);
      }
      return counter.count(keyId);
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
