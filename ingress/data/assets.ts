/**
 * Reading files' rows, and what the ingress alone writes of them. Only what is stored is found: a file of a request that has not
 * succeeded does not exist for anybody.
 */
import { type AssetFile, assetFileToJson } from '../../core/assets/files.ts';
import type { AssetKind, AssetName } from '../../core/assets/keys.ts';
import type { Pool } from '../../core/database.ts';

export interface Asset extends AssetName {
  readonly accountId: string;
  readonly requestId: string | null;
  /** Among those of its kind in the request, from 0. */
  readonly position: number;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** The one that its generation's own address serves. */
  readonly isSelected: boolean;
  readonly createdAt: Date;
  /** Null: kept until it is deleted. */
  readonly expiresAt: Date | null;
  readonly deletedAt: Date | null;
  /** By the database's clock. */
  readonly isExpired: boolean;
}

export const ASSET_COLUMNS = `a.id, a.kind, a.content_type as "contentType", a.account_id as "accountId", a.request_id as "requestId",
  a.position, a.bytes, encode(a.sha256, 'hex') as sha256, a.details, a.is_selected as "isSelected", a.created_at as "createdAt",
  a.expires_at as "expiresAt", a.deleted_at as "deletedAt",
  coalesce(a.expires_at <= now(), false) as "isExpired"`;

const FIND_ASSET = {
  name: 'find_asset',
  text: `select ${ASSET_COLUMNS} from app.assets a
    where a.id = $1 and a.account_id = coalesce($2::uuid, a.account_id) and a.state = 'stored'`,
};

/** `accountId` null: whoever's it is (what its owner has made public). Expired and deleted ones too: `serveAsset` says so. */
export async function findAsset(
  pool: Pool,
  id: string,
  accountId: string | null,
): Promise<Asset | undefined> {
  const { rows } = await pool.query<Asset>({ ...FIND_ASSET, values: [id, accountId] });
  return rows[0];
}

const FIND_ASSETS_OF_REQUESTS = {
  name: 'find_assets_of_requests',
  text: `select ${ASSET_COLUMNS} from app.assets a
    where a.request_id = any ($1::uuid[]) and a.account_id = coalesce($2::uuid, a.account_id) and a.kind = any ($3::text[])
      and a.state = 'stored'
    order by a.kind, a.position`,
};

/** By kind and position, whatever the request; `accountId` null: whoever's they are. */
export async function findAssetsOfRequests(
  pool: Pool,
  requestIds: readonly string[],
  accountId: string | null,
  kinds: readonly AssetKind[],
): Promise<Asset[]> {
  const { rows } = await pool.query<Asset>({
    ...FIND_ASSETS_OF_REQUESTS,
    values: [requestIds, accountId, kinds],
  });
  return rows;
}

/** By kind and position. */
export async function findAssetsOfRequest(
  pool: Pool,
  requestId: string,
  accountId: string | null,
  kinds: readonly AssetKind[],
): Promise<Asset[]> {
  return findAssetsOfRequests(pool, [requestId], accountId, kinds);
}

const LIST_ASSETS = {
  name: 'list_assets',
  text: `select ${ASSET_COLUMNS} from app.assets a
    where a.account_id = $1 and a.kind = $2 and a.id < coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      and a.state = 'stored' and a.deleted_at is null
    order by a.id desc
    limit $4`,
};

/** An account's own, newest first, without those it has deleted; `before`: only older ones than this. */
export async function listAssets(
  pool: Pool,
  filter: {
    readonly accountId: string;
    readonly kind: AssetKind;
    readonly before: string | undefined;
    readonly limit: number;
  },
): Promise<Asset[]> {
  const { rows } = await pool.query<Asset>({
    ...LIST_ASSETS,
    values: [filter.accountId, filter.kind, filter.before ?? null, filter.limit],
  });
  return rows;
}

const FIND_CACHED = {
  name: 'find_cached_result',
  text: `select ${ASSET_COLUMNS}
    from app.result_cache c
    join app.assets a on a.request_id = c.request_id and a.kind = any ('{image,audio,video}') and a.state = 'stored'
    where c.account_id = $1 and c.cache_key = decode($2, 'hex') and c.expires_at > now()
    order by a.kind, a.position`,
};

export interface CachedResult {
  /** Of the request that made it. */
  readonly requestId: string;
  /** All of its results, by kind and position. */
  readonly assets: readonly Asset[];
}

/** What this account has had made of the same before, if all of it is still there. `cacheKey`: SHA-256, hexadecimal. */
export async function findCachedResult(
  pool: Pool,
  accountId: string,
  cacheKey: string,
): Promise<CachedResult | undefined> {
  const { rows } = await pool.query<Asset>({ ...FIND_CACHED, values: [accountId, cacheKey] });
  const requestId = rows[0]?.requestId;
  const isWhole = rows.every((asset) => asset.deletedAt === null && !asset.isExpired);
  return requestId != null && isWhole ? { requestId, assets: rows } : undefined;
}

/** Shows files that belong to no request. */
export async function storeAssets(pool: Pool, files: readonly AssetFile[]): Promise<void> {
  const { rows } = await pool.query({
    name: 'store_assets',
    text: 'select id from app.store_assets($1) id',
    values: [JSON.stringify(files.map(assetFileToJson))],
  });
  if (rows.length !== files.length) throw new Error('a file was not begun, or belongs to a request');
}

/** Of the account's own: gone from now on. Returns those that were there. */
export async function deleteAssets(pool: Pool, accountId: string, ids: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'delete_assets',
    text: 'select id from app.delete_assets($1, $2::uuid[]) id',
    values: [accountId, ids],
  });
  return rows.map((row) => row.id);
}
