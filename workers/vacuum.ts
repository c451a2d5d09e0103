/**
 * Vacuums the tables whose rows live no longer than a request. Autovacuum looks at a database once a minute; until then every
 * fetch of jobs passes over all that were taken since (docs/decisions/0024-vacuum.md). Every worker does it; one at a time works.
 */
import type { Pool } from '../core/database.ts';

/** The engine's jobs, and the holds of open requests. */
const TABLES = ['graphile_worker._private_jobs', 'app.holds'];
/** A table is due from so many dead rows on, and so many more for each row in it (a long queue is long to vacuum). */
const DUE_DEAD_ROWS = 2000;
const DUE_DEAD_SHARE = 0.05;
/** At most this part of the time, also where a transaction under way elsewhere keeps dead rows from being removed. */
const MAX_TIME_SHARE = 0.05;

const FIND_DUE = {
  name: 'tables_due_for_vacuum',
  text: `select name from unnest($1::text[]) name
    where pg_stat_get_dead_tuples(name::regclass) >= $2 + $3::float8 * pg_stat_get_live_tuples(name::regclass)`,
  values: [TABLES, DUE_DEAD_ROWS, DUE_DEAD_SHARE],
};

/** `enginePool`: as the owner of the tables. */
export function makeVacuum(enginePool: Pool): () => Promise<void> {
  let restsUntil = 0;
  return async () => {
    if (performance.now() < restsUntil) return;
    const due = await enginePool.query<{ name: string }>(FIND_DUE);
    if (due.rows.length === 0) return;
    const startedAt = performance.now();
    try {
      const tables = due.rows.map(({ name }) => name).join(', ');
      // the dead entries of the indexes are what costs; truncating would lock out everybody
      await enginePool.query(`vacuum (skip_locked, index_cleanup on, truncate off) ${tables}`);
    } finally {
      const now = performance.now();
      restsUntil = now + (now - startedAt) * (1 / MAX_TIME_SHARE - 1);
    }
  };
}
