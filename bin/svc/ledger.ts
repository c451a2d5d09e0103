/** `svc ledger check`. */
import type { Config } from '../../core/config.ts';
import { withDatabase } from './database.ts';
import type { Outcome } from './failure.ts';

interface LedgerCheck {
  readonly accounts: number;
  readonly entries: number;
  readonly open_holds: number;
  readonly stale_holds: number;
  readonly drift_ap: number;
  readonly problems: readonly Readonly<Record<string, unknown>>[];
}

const LEDGER_CHECK = `
  select accounts, entries, open_holds, stale_holds, drift_ap, problems from app.ledger_check()`;

export function checkLedger(config: Config): Promise<Outcome> {
  return withDatabase(config, async (pool) => {
    const { rows } = await pool.query<LedgerCheck>(LEDGER_CHECK);
    const check = rows[0] as LedgerCheck;
    const { problems } = check;
    return {
      json: { ...check },
      text: [
        `accounts ${check.accounts}, entries ${check.entries}, open holds ${check.open_holds}`,
        `stale holds ${check.stale_holds}, drift ${check.drift_ap} AP`,
        problems.length === 0 ? 'The books are in order' : `${problems.length} problems:`,
        ...problems.map((problem) => `  ${JSON.stringify(problem)}`),
      ].join('\n'),
      isProblem: problems.length > 0,
    };
  });
}
