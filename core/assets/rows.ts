/** What both ingress and workers write in app.assets; which functions each may call is said in sql/grants.sql. */
import type { Pool } from '../database.ts';
import type { AssetKind, AssetName } from './keys.ts';

export interface NewAsset extends AssetName {
  readonly accountId: string;
  /** Null: of no request (a character's). */
  readonly requestId: string | null;
  readonly position: number;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

/** Rows before files: what is put and never stored is found by them. */
export async function beginAssets(pool: Pool, assets: readonly NewAsset[]): Promise<void> {
  await pool.query({
    name: 'begin_assets',
    text: 'select app.begin_assets($1)',
    values: [JSON.stringify(assets.map(toJson))],
  });
}

/** Of these, those that are not stored: theirs to delete is the caller's for ten minutes, then housekeeping's. */
export async function abandonAssets(pool: Pool, ids: readonly string[]): Promise<AssetName[]> {
  const { rows } = await pool.query<AssetName>({
    name: 'abandon_assets',
    text: 'select id, kind, content_type as "contentType" from app.abandon_assets($1::uuid[])',
    values: [ids],
  });
  return rows;
}

/** The files of these are gone. */
export async function purgeAssets(pool: Pool, ids: readonly string[]): Promise<void> {
  await pool.query({ name: 'purge_assets', text: 'select app.purge_assets($1::uuid[])', values: [ids] });
}

function toJson(asset: NewAsset): Record<string, unknown> {
  return {
    id: asset.id,
    account_id: asset.accountId,
    request_id: asset.requestId,
    kind: asset.kind satisfies AssetKind,
    position: asset.position,
    content_type: asset.contentType,
    details: asset.details,
  };
}
