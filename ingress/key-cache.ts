/**
 * API keys in memory. A key is looked up once and then known until the database tells of a change to it or its account
 * (`svc_accounts`); while the notification connection is down nothing is served from memory. Unknown keys are remembered
 * briefly too, so that guessing costs the database little.
 */
import { LRUCache } from 'lru-cache';
import type { Pool } from '../core/database.ts';
import type { Language } from '../core/errors.ts';
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
const UNKNOWN_TTL_MS = 5_000;
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
  /** Writes the times of last use that have not been written yet. */
  touch(): Promise<void>;
  close(): Promise<void>;
}

export function makeKeyCache(options: {
  pool: Pool;
  /** Whether changes reach us at this moment. */
  isFresh: () => boolean;
  onError: (error: Error) => void;
}): KeyCache {
  const cache = new LRUCache<string, { caller: Caller | undefined }>({ max: MAX_KEYS, ttl: TTL_MS });
  const secretsOfAccount = new Map<string, Set<string>>();
  const loading = new Map<string, Promise<Caller | undefined>>();
  let used = new Set<string>();
  // a lookup that began before a change must not be remembered after it
  let generation = 0;

  async function load(secret: string): Promise<Caller | undefined> {
    const begun = generation;
    const hash = hashSecret(secret);
    const { rows } = await options.pool.query<Caller>({ ...FIND_KEY, values: [hash] });
    const caller = rows[0];
    if (begun === generation && options.isFresh()) {
      cache.set(secret, { caller }, { ttl: caller === undefined ? UNKNOWN_TTL_MS : TTL_MS });
      if (caller !== undefined) {
        const secrets = secretsOfAccount.get(caller.accountId);
        if (secrets === undefined) secretsOfAccount.set(caller.accountId, new Set([secret]));
        else secrets.add(secret);
      }
    }
    return caller;
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
      const known = options.isFresh() ? cache.get(secret) : undefined;
      let caller = known?.caller;
      if (known === undefined) {
        let lookup = loading.get(secret);
        if (lookup === undefined) {
          lookup = load(secret).finally(() => loading.delete(secret));
          loading.set(secret, lookup);
        }
        caller = await lookup;
      }
      if (caller !== undefined) used.add(caller.keyId);
      return caller;
    },
    forgetAccount(accountId) {
      generation += 1;
      loading.clear();
      for (const secret of secretsOfAccount.get(accountId) ?? []) cache.delete(secret);
      secretsOfAccount.delete(accountId);
    },
    forgetAll() {
      generation += 1;
      loading.clear();
      cache.clear();
      secretsOfAccount.clear();
    },
    touch,
    async close() {
      clearInterval(timer);
      await touch().catch(options.onError);
    },
  };
}
