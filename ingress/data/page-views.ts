/** Adds counted page views to the database's. */
import type { Pool } from '../../core/database.ts';

export interface PageViews {
  /** `yyyy-mm-dd`, UTC. */
  readonly day: string;
  readonly page: string;
  readonly views: number;
}

export async function addPageViews(pool: Pool, counted: readonly PageViews[]): Promise<void> {
  await pool.query({
    name: 'count_page_views',
    text: 'select app.count_page_views($1)',
    values: [JSON.stringify(counted)],
  });
}
