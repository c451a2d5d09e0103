/** `svc account create` and `svc grant`. */
import type { Config } from '../../core/config.ts';
import type { Pool } from '../../core/database.ts';
import { withDatabase } from './database.ts';
import { Failure, type Outcome } from './failure.ts';

export interface NewAccount {
  readonly name: string;
  readonly kind: 'personal' | 'enterprise';
  readonly subject?: string;
  readonly language?: 'ja' | 'en';
  readonly card: boolean;
}

export interface Credit {
  readonly account: string;
  readonly ap: number;
  readonly kind: 'purchase' | 'grant' | 'adjustment';
  readonly reason: string;
}

const CREATE_ACCOUNT = `select app.create_account($1, $2, $3, $4, $5, 'cli') as account_id`;
const CREDIT = `select entry_id, balance_ap from app.credit_account_audited($1, $2, $3, $4, 'cli')`;
const FIND_ACCOUNT = 'select from app.accounts where id = $1';

export function createAccount(config: Config, account: NewAccount): Promise<Outcome> {
  return withDatabase(config, async (pool) => {
    const { rows } = await pool
      .query<{ account_id: string }>(CREATE_ACCOUNT, [
        account.name,
        account.kind,
        account.subject ?? null,
        account.language ?? null,
        account.card,
      ])
      .catch((error: unknown) => {
        if ((error as { constraint?: unknown }).constraint !== 'subject_belongs_to_one_account') throw error;
        throw new Failure(`subject ${account.subject} already has an account`, { cause: error });
      });
    const accountId = rows[0]?.account_id;
    return { json: { account_id: accountId }, text: `Created account ${accountId}` };
  });
}

export function credit(config: Config, { account, ap, kind, reason }: Credit): Promise<Outcome> {
  return withDatabase(config, async (pool) => {
    await requireAccount(pool, account);
    const { rows } = await pool.query<{ entry_id: number; balance_ap: number }>(CREDIT, [
      account,
      ap,
      kind,
      reason,
    ]);
    const entry = rows[0];
    return {
      json: { entry_id: entry?.entry_id, balance_ap: entry?.balance_ap },
      text: `Ledger entry ${entry?.entry_id}; the balance is ${entry?.balance_ap} AP`,
    };
  });
}

export async function requireAccount(pool: Pool, account: string): Promise<void> {
  const { rowCount } = await pool.query(FIND_ACCOUNT, [account]);
  if (rowCount === 0) throw new Failure(`no account has the id ${account}`);
}
