/** `svc key issue` and `svc key revoke`. */
import type { Config } from '../../core/config.ts';
import { type KeyPrefix, makeSecret, type Scope } from '../../core/keys.ts';
import { requireAccount } from './accounts.ts';
import { withDatabase } from './database.ts';
import { Failure, type Outcome } from './failure.ts';

export interface NewKey {
  readonly account: string;
  readonly name?: string;
  /** None asked for: the server decides. */
  readonly prefix?: KeyPrefix;
  readonly scopes?: readonly Scope[];
  readonly capPerRequestAp?: number;
  readonly capDailyAp?: number;
  readonly capMonthlyAp?: number;
  readonly models?: readonly string[];
  readonly ratePerMinute?: number;
  readonly expiresAt?: Date;
}

const ISSUE_KEY = `select app.issue_key($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'cli') as key_id`;
const REVOKE_KEY = `select app.revoke_key($1, 'cli') as revoked_at`;

export function issueKey(config: Config, key: NewKey): Promise<Outcome> {
  return withDatabase(config, async (pool) => {
    await requireAccount(pool, key.account);
    const prefix = key.prefix ?? 'svc_live_';
    const { secret, hash, hint } = makeSecret(prefix);
    const { rows } = await pool.query<{ key_id: string }>(ISSUE_KEY, [
      key.account,
      hash,
      prefix,
      hint,
      key.name ?? null,
      key.scopes ?? null,
      key.models ?? null,
      key.capPerRequestAp ?? null,
      key.capDailyAp ?? null,
      key.capMonthlyAp ?? null,
      key.ratePerMinute ?? null,
      key.expiresAt ?? null,
    ]);
    const keyId = rows[0]?.key_id;
    return {
      json: { key_id: keyId, secret },
      text: `Issued key ${keyId}\nIts secret, shown only now: ${secret}`,
    };
  });
}

export function revokeKey(config: Config, key: string): Promise<Outcome> {
  return withDatabase(config, async (pool) => {
    const { rows } = await pool.query<{ revoked_at: Date | null }>(REVOKE_KEY, [key]);
    const revokedAt = rows[0]?.revoked_at?.toISOString();
    if (revokedAt === undefined) throw new Failure(`no key has the id ${key}`);
    return { json: { key_id: key, revoked_at: revokedAt }, text: `Key ${key} is revoked since ${revokedAt}` };
  });
}
