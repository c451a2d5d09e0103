/** Figures of the last minute over the whole platform, from its newest requests. */
import type { Pool } from '../../core/database.ts';

export interface Statistics {
  readonly requests: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
}

/** Latencies are read off the newest ten thousand: enough for percentiles, bounded at any load. */
const READ_STATISTICS = {
  name: 'read_statistics',
  text: `with recent as (
      select q.state, extract(epoch from q.finished_at - q.created_at) * 1000 as ms
        from app.requests q
        where q.id >= app.uuid_floor(now() - interval '60 seconds')
    ), sample as (select ms from recent where ms is not null limit 10000)
    select count(*) as requests,
      count(*) filter (where state = 'succeeded') as succeeded,
      count(*) filter (where state in ('failed', 'expired')) as failed,
      (select round(percentile_cont(0.5) within group (order by ms)::numeric, 1)::float8 from sample) as "p50Ms",
      (select round(percentile_cont(0.95) within group (order by ms)::numeric, 1)::float8 from sample) as "p95Ms",
      (select round(percentile_cont(0.99) within group (order by ms)::numeric, 1)::float8 from sample) as "p99Ms"
      from recent`,
};

export async function readStatistics(pool: Pool): Promise<Statistics> {
  const { rows } = await pool.query<Statistics>(READ_STATISTICS);
  return rows[0] as Statistics;
}
