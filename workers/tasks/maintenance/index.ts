/** Housekeeping by the clock: partitions ahead of time, and what is past its retention. */
import { type ParsedCronItem, type TaskList, parseCronItems } from 'graphile-worker';
import type { Pool } from '../../../core/database.ts';

const PARTITIONS_TASK = 'maintenance/partitions';
const PURGE_TASK = 'maintenance/purge';

export const CRON_ITEMS: ParsedCronItem[] = parseCronItems([
  { task: PARTITIONS_TASK, match: '7 * * * *', options: { backfillPeriod: 0, maxAttempts: 3 } },
  { task: PURGE_TASK, match: '*/5 * * * *', options: { backfillPeriod: 0, maxAttempts: 3 } },
]);

/** Rows purged in one statement; what is left waits for the next. */
const PURGE_BATCH = 5000;
const MAX_PURGE_BATCHES = 200;

export function makeMaintenanceTasks(pool: Pool): TaskList {
  return {
    async [PARTITIONS_TASK]() {
      await pool.query('select app.maintain_partitions()');
    },
    async [PURGE_TASK]() {
      for (let batch = 0; batch < MAX_PURGE_BATCHES; batch += 1) {
        const { rows } = await pool.query<{ purged: number }>('select app.purge_expired($1) as purged', [PURGE_BATCH]);
        if ((rows[0]?.purged ?? 0) < PURGE_BATCH) return;
      }
    },
  };
}
