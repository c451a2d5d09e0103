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
import { makeCoalescer } from '../core/coalesce.ts';
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
          maxRetriesPerRequest: 0,
          connectTimeout: 3000,
          commandTimeout: 500,
          retryStrategy: (attempt) => Math.min(50 * attempt, 1000),
        });
  redis?.on('error', onError);
  const storeClient = redis && makeSharedClient(redis);

  return {
    make({ name, limit, windowSeconds }) {
      const options = { points: limit, duration: windowSeconds, keyPrefix: name };
      const memory = new RateLimiterMemory(options);
      const limiter =
        storeClient === undefined
          ? memory
          : new RateLimiterRedis({ ...options, storeClient, insuranceLimiter: memory });
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

/** As many counts as may share one command, and how many commands may be under way. */
const SHARED = { maxBatch: 200, maxInFlight: 2 };

/**
 * KEYS[i] counts ARGV[2i - 1] more within a window of ARGV[2i] seconds that begins with its first count. Answers with the count and
 * the window's rest in milliseconds, for each key in turn.
 */
const COUNT_ALL = `
  local answers = {}
  for i, key in ipairs(KEYS) do
    local count = redis.call('incrby', key, ARGV[2 * i - 1])
    local rest = redis.call('pttl', key)
    if rest == -1 then
      redis.call('expire', key, ARGV[2 * i])
      rest = 1000 * ARGV[2 * i]
    end
    answers[2 * i - 1] = count
    answers[2 * i] = rest
  end
  return answers
`;

type CountAll = (keyCount: number, ...keysAndArguments: string[]) => Promise<number[]>;

/**
 * What the limiter calls instead of Redis: counts that arrive together share one command. What one each would cost:
 * docs/decisions/0022-shared-counts.md.
 */
function makeSharedClient(redis: Redis): { rlflxIncr(count: readonly string[]): Promise<number[]> } {
  redis.defineCommand('countAll', { lua: COUNT_ALL });
  const { countAll } = redis as unknown as { countAll: CountAll };
  const counts = makeCoalescer<readonly string[], number[]>({
    ...SHARED,
    async run(batch) {
      const keys = batch.map(([key = '']) => key);
      const amounts = batch.flatMap(([, points = '1', seconds = '1']) => [points, seconds]);
      const answers = await countAll.call(redis, keys.length, ...keys, ...amounts);
      return batch.map((_, index) => answers.slice(2 * index, 2 * index + 2));
    },
  });
  return { rlflxIncr: (count) => counts.add(count) };
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
