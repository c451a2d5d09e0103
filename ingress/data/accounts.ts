/** Reading balances and what is left of a key's caps. */
import type { Pool } from '../../core/database.ts';

export interface Balance {
  readonly balanceAp: number;
  readonly heldAp: number;
  readonly purchasedAp: number;
}

const FIND_BALANCE = {
  name: 'find_balance',
  text: `select balance_ap as "balanceAp", held_ap as "heldAp", purchased_ap as "purchasedAp"
    from app.balances where account_id = $1`,
};

export async function findBalance(pool: Pool, accountId: string): Promise<Balance | undefined> {
  const { rows } = await pool.query<Balance>({ ...FIND_BALANCE, values: [accountId] });
  return rows[0];
}

export interface KeyDetails {
  readonly name: string;
  readonly hint: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly usedTodayAp: number;
  readonly usedThisMonthAp: number;
}

const FIND_KEY_DETAILS = {
  name: 'find_key_details',
  text: `select k.name, k.hint, k.created_at as "createdAt", k.last_used_at as "lastUsedAt",
      app.cap_used(k.id, 'key:day', (now() at time zone 'utc')::date) as "usedTodayAp",
      app.cap_used(k.id, 'key:month', date_trunc('month', now() at time zone 'utc')::date) as "usedThisMonthAp"
    from app.keys k where k.id = $1`,
};

export async function findKeyDetails(pool: Pool, keyId: string): Promise<KeyDetails | undefined> {
  const { rows } = await pool.query<KeyDetails>({ ...FIND_KEY_DETAILS, values: [keyId] });
  return rows[0];
}
