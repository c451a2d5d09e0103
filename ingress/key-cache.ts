/**
 * API keys in memory. A key is looked up once and then known until the database tells of a change to it or its account
 * (`svc_accounts`); while the notification connection is down nothing is served from memory. Unknown keys are remembered
 * briefly too, apart from the others, and few are looked up at a time: guessing costs the database and known keys little.
 */
import { LRUCache } from 'lru-cache';
import { makeCoalescer } from '../core/coalesce.ts';
import type { Pool } from '../core/database.ts';
import { type Language, ServiceError } from '../core/errors.ts';
import { hashSecret, isKeyShaped, type KeyPrefix } from '../core/keys.ts';

/** A key and what matters of its account, as app.find_key gives it. */
export interface Caller {
  readonly keyId: string;
  readonly accountId: string;
  readonly prefix: KeyPrefix;
  readonly scopes: readonly string[];
  /** Null: every model. */
  readonly keyModels: readonly string[] | null;
  readonly accountModels: readonly string[] | null;
  readonly capPerRequestAp: number | null;
  readonly capDailyAp: number | null;
  readonly capMonthlyAp: number | null;
  readonly ratePerMinute: number;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly accountKind: 'personal' | 'enterprise';
  readonly accountApproved: boolean;
  readonly accountCreatedAt: Date;
  readonly language: Language | null;
  readonly subject: string | null;
  readonly cardOnFile: boolean;
  readonly hadInitialGrant: boolean;
  /** Some of the balance was purchased. */
  readonly hasPurchased: boolean;
  readonly hasBalance: boolean;
}

const MAX_KEYS = 50_000;
/** A bound on staleness should a notification ever be lost unnoticed. */
const TTL_MS = 60_000;
const MAX_UNKNOWN = 10_000;
const UNKNOWN_TTL_MS = 5_000;
/** Look-ups under way at once, fewer than the pool has connections; and how many may wait for that. */
const MAX_LOOKUPS = 8;
const MAX_WAITING = 2_000;
const TOUCH_INTERVAL_MS = 60_000;

const FIND_KEY = {
  name: 'find_key',
  text: `select key_id as "keyId", account_id as "accountId", prefix, scopes, key_models as "keyModels",
    account_models as "accountModels", cap_per_request_ap as "capPerRequestAp", cap_daily_ap as "capDailyAp",
    cap_monthly_ap as "capMonthlyAp", rate_per_minute as "ratePerMinute", expires_at as "expiresAt",
    revoked_at as "revokedAt", account_kind as "accountKind", account_approved as "accountApproved",
    account_created_at as "accountCreatedAt", language, subject, card_on_file as "cardOnFile",
    had_initial_grant as "hadInitialGrant", has_purchased as "hasPurchased", has_balance as "hasBalance"
    from app.find_key($1)`,
};

export interface KeyCache {
  /** The key of a secret, whatever its state; undefined when there is none. */
  find(secret: string): Promise<Caller | undefined>;
  forgetAccount(accountId: string): void;
  forgetAll(): void;
  /** Of what is remembered. */
  readonly size: { readonly known: number; readonly accounts: number };
  /** Writes the times of last use that have not been written yet. */
  touch(): Promise<void>;
  close(): Promise<void>;
}

export function makeKeyCache(options: {
  pool: Pool;
  /** Whether changes reach us at this moment. */
  isFresh: () => boolean;
  onError: (error: Error) => void;
  maxKeys?: number;
}): KeyCache {
  // by hash: a dump of this memory tells no secret
  const known = new LRUCache<string, Caller>({
    max: options.maxKeys ?? MAX_KEYS,
    ttl: TTL_MS,
    dispose: ({ accountId }, hash) => {
      const hashes = hashesOfAccount.get(accountId);
      hashes?.delete(hash);
      if (hashes?.size === 0) hashesOfAccount.delete(accountId);
    },
  });
  const unknown = new LRUCache<string, true>({ max: MAX_UNKNOWN, ttl: UNKNOWN_TTL_MS });
  const hashesOfAccount = new Map<string, Set<string>>();
  const loading = new Map<string, Promise<Caller | undefined>>();
  let used = new Set<string>();
  // a lookup that began before a change must not be remembered after it
  let generation = 0;
  const lookups = makeCoalescer<Buffer, Caller | undefined>({
    maxBatch: 1,
    maxInFlight: MAX_LOOKUPS,
    run: async ([hash]) => [await load(hash as Buffer)],
  });

  async function load(hash: Buffer): Promise<Caller | undefined> {
    const begun = generation;
    const { rows } = await options.pool.query<Caller>({ ...FIND_KEY, values: [hash] });
    const caller = rows[0];
    if (begun === generation && options.isFresh()) remember(hash.toString('base64'), caller);
    return caller;
  }

  function remember(hash: string, caller: Caller | undefined): void {
    if (caller === undefined) {
      unknown.set(hash, true);
      return;
    }
    known.set(hash, caller);
    const hashes = hashesOfAccount.get(caller.accountId);
    if (hashes === undefined) hashesOfAccount.set(caller.accountId, new Set([hash]));
    else hashes.add(hash);
  }

  /** One look-up for all who ask for the same key meanwhile. */
  function lookUp(hash: Buffer, name: string): Promise<Caller | undefined> {
    const underWay = loading.get(name);
    if (underWay !== undefined) return underWay;
    if (lookups.size >= MAX_WAITING)
      return Promise.reject(new ServiceError('generation_failed', {}, { retryAfterSeconds: 2 }));
    const lookup = lookups.add(hash).finally(() => {
      if (loading.get(name) === lookup) loading.delete(name);
    });
    loading.set(name, lookup);
    return lookup;
  }

  async function touch(): Promise<void> {
    if (used.size === 0) return;
    const keys = [...used];
    used = new Set();
    await options.pool.query('select app.touch_keys($1::uuid[])', [keys]);
  }
  const timer = setInterval(() => void touch().catch(options.onError), TOUCH_INTERVAL_MS);
  timer.unref();

  return {
    async find(secret) {
      if (!isKeyShaped(secret)) return undefined;
      const hash = hashSecret(secret);
      const name = hash.toString('base64');
      let caller = options.isFresh() ? known.get(name) : undefined;
      if (caller === undefined) {
        if (options.isFresh() && unknown.has(name)) return undefined;
        caller = await lookUp(hash, name);
      }
      if (caller !== undefined) used.add(caller.keyId);
      return caller;
    },
    forgetAccount(accountId) {
      generation += 1;
      loading.clear();
      for (const hash of [...(hashesOfAccount.get(accountId) ?? [])]) known.delete(hash);
    },
    forgetAll() {
      generation += 1;
      loading.clear();
      known.clear();
      unknown.clear();
    },
    get size() {
      return { known: known.size, accounts: hashesOfAccount.size };
    },
    touch,
    async close() {
      clearInterval(timer);
      await touch().catch(options.onError);
    },
  };
}
