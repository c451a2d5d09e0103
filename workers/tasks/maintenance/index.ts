/** Housekeeping by the clock: partitions ahead of time, what is past its retention, and the nightly check of the books. */
import { type ParsedCronItem, parseCronItems, type TaskList } from 'graphile-worker';
import type { AssetStore } from '../../../core/assets/store.ts';
import { type Pool, withTransaction } from '../../../core/database.ts';
import type { Logger } from '../../../core/logger.ts';
import { sweepAssets } from './assets.ts';

const PARTITIONS_TASK = 'maintenance/partitions';
const ASSETS_TASK = 'maintenance/assets';
const PURGE_TASK = 'maintenance/purge';
const RECONCILE_TASK = 'maintenance/reconcile';

export const CRON_ITEMS: ParsedCronItem[] = parseCronItems([
  { task: PARTITIONS_TASK, match: '7 * * * *', options: { backfillPeriod: 0, maxAttempts: 3 } },
  { task: RECONCILE_TASK, match: '23 3 * * *', options: { backfillPeriod: 0, maxAttempts: 3 } },
  { task: ASSETS_TASK, match: '*/5 * * * *', options: { backfillPeriod: 0, maxAttempts: 3 } },
  { task: PURGE_TASK, match: '*/5 * * * *', options: { backfillPeriod: 0, maxAttempts: 3 } },
]);

/** Rows purged in one statement; what is left waits for the next. */
const PURGE_BATCH = 5000;
const MAX_PURGE_BATCHES = 200;

/** The whole ledger is read: minutes on tens of millions of entries. */
const RECONCILE_TIMEOUT = '1h';

interface LedgerCheck {
  readonly accounts: number;
  readonly entries: number;
  readonly open_holds: number;
  readonly stale_holds: number;
  readonly drift_ap: number;
  readonly problems: readonly unknown[];
}

export function makeMaintenanceTasks(pool: Pool, store: AssetStore, logger: Logger): TaskList {
  return {
    async [PARTITIONS_TASK]() {
      await pool.query('select app.maintain_partitions()');
    },
    async [ASSETS_TASK]() {
      await sweepAssets({ pool, store, logger });
    },
    /** The books against themselves, every night; a difference is an alarm (docs/operations.md). */
    async [RECONCILE_TASK]() {
      const { rows } = await withTransaction(pool, async (client) => {
        await client.query(`set local statement_timeout = '${RECONCILE_TIMEOUT}'`);
        return client.query<LedgerCheck>('select * from app.ledger_check()');
      });
      const { problems, ...figures } = rows[0] as LedgerCheck;
      if (problems.length > 0)
        logger.fatal({ ...figures, problems }, 'the books do not agree with themselves');
      else logger.info(figures, 'the books agree with themselves');
    },
    async [PURGE_TASK]() {
      for (let batch = 0; batch < MAX_PURGE_BATCHES; batch += 1) {
        const { rows } = await pool.query<{ purged: number }>('select app.purge_expired($1) as purged', [
          PURGE_BATCH,
        ]);
        if ((rows[0]?.purged ?? 0) < PURGE_BATCH) return;
      }
    },
  };
}
