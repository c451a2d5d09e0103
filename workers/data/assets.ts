/** What a worker asks the database about files; what it writes of them is in core/assets/rows.ts. */
import type { AssetName } from '../../core/assets/keys.ts';
import type { Pool } from '../../core/database.ts';

export interface DueAsset extends AssetName {
  /** Its file is to go; else it is looked at again later. */
  readonly isOver: boolean;
}

/** Files that are to be looked at, as many as `limit`: those that are over are the caller's to delete. */
export async function findDueAssets(pool: Pool, limit: number): Promise<DueAsset[]> {
  const { rows } = await pool.query<DueAsset>({
    name: 'due_assets',
    text: 'select id, kind, content_type as "contentType", is_over as "isOver" from app.due_assets($1)',
    values: [limit],
  });
  return rows;
}

export async function findInputIds(pool: Pool, requestId: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'find_input_ids',
    text: `select id from app.assets where request_id = $1 and kind = 'input'`,
    values: [requestId],
  });
  return rows.map((row) => row.id);
}
