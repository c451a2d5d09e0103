/**
 * Generations as their owner finds them again: the request, and its pictures as long as they are kept. Everything an answer says is
 * in these rows, so that it can be given long after the stored answer is gone.
 */
import type { Pool } from '../../core/database.ts';
import { IMAGE_TASK } from '../../core/images.ts';
import {
  type Asset,
  findAsset,
  findAssetsOfRequest,
  findAssetsOfRequests,
  findCachedResult,
} from './assets.ts';
import type { RequestState } from './requests.ts';

export interface Generation {
  readonly id: string;
  readonly modelId: string;
  readonly state: RequestState;
  readonly costAp: number | null;
  readonly usage: Readonly<Record<string, unknown>> | null;
  readonly errorCode: string | null;
  readonly errorDetails: Record<string, unknown> | null;
  readonly createdAt: Date;
  /** In the order they were made; those that were deleted or have expired too. */
  readonly images: readonly Asset[];
}

type GenerationRow = Omit<Generation, 'images'>;

const COLUMNS = `q.id, q.model_id as "modelId", q.state, q.cost_ap as "costAp", q.usage, q.error_code as "errorCode",
  q.error_details as "errorDetails", q.created_at as "createdAt"`;

const FIND_GENERATION = {
  name: 'find_generation',
  text: `select ${COLUMNS} from app.requests q where q.id = $1 and q.account_id = $2 and q.task = '${IMAGE_TASK}'`,
};

async function findRow(pool: Pool, id: string, accountId: string): Promise<GenerationRow | undefined> {
  const { rows } = await pool.query<GenerationRow>({ ...FIND_GENERATION, values: [id, accountId] });
  return rows[0];
}

export async function findGeneration(
  pool: Pool,
  id: string,
  accountId: string,
): Promise<Generation | undefined> {
  const row = await findRow(pool, id, accountId);
  if (row === undefined) return undefined;
  return { ...row, images: await findAssetsOfRequest(pool, id, accountId, ['image']) };
}

/** The generation that answers the same question, if all its pictures are still there. */
export async function findCachedGeneration(
  pool: Pool,
  accountId: string,
  cacheKey: string,
): Promise<Generation | undefined> {
  const cached = await findCachedResult(pool, accountId, cacheKey);
  const row = cached === undefined ? undefined : await findRow(pool, cached.requestId, accountId);
  return cached === undefined || row === undefined ? undefined : { ...row, images: cached.assets };
}

/** The picture of this id; or all those of the generation of this id, in the order they were made. */
export async function findOwnImages(pool: Pool, id: string, accountId: string): Promise<readonly Asset[]> {
  const found = await findAsset(pool, id, accountId);
  if (found !== undefined) return found.kind === 'image' ? [found] : [];
  return await findAssetsOfRequest(pool, id, accountId, ['image']);
}

/** The picture of this id; or of the generation of this id the selected one, else the first, of those that may still be shown. */
export async function findImage(pool: Pool, id: string, accountId: string): Promise<Asset | undefined> {
  const images = await findOwnImages(pool, id, accountId);
  const live = images.filter(({ deletedAt, isExpired }) => deletedAt === null && !isExpired);
  return live.find(({ isSelected }) => isSelected) ?? live[0] ?? images[0];
}

const isLive = (asset: string) =>
  `${asset}.state = 'stored' and ${asset}.deleted_at is null and (${asset}.expires_at is null or ${asset}.expires_at > now())`;
const LIST_GENERATIONS = {
  name: 'list_generations',
  text: `select ${COLUMNS}
    from (
      select a.id, a.request_id from app.assets a
        where a.account_id = $1 and a.kind = 'image' and a.id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
          and ${isLive('a')}
          and not exists (
            select from app.assets b
              where b.request_id = a.request_id and b.kind = 'image' and b.position < a.position and ${isLive('b')}
          )
        order by a.id desc
        limit $3
    ) page
    join app.requests q on q.id = page.request_id and q.task = '${IMAGE_TASK}'
    order by page.id desc`,
};

/** Those of which a picture is kept, newest first; `before`: only those whose first that is kept is older than this. */
export async function listGenerations(
  pool: Pool,
  filter: { readonly accountId: string; readonly before: string | undefined; readonly limit: number },
): Promise<Generation[]> {
  const { rows } = await pool.query<GenerationRow>({
    ...LIST_GENERATIONS,
    values: [filter.accountId, filter.before ?? null, filter.limit],
  });
  const images = await findAssetsOfRequests(
    pool,
    rows.map(({ id }) => id),
    filter.accountId,
    ['image'],
  );
  const byRequest = Map.groupBy(images, ({ requestId }) => requestId);
  return rows.map((row) => ({ ...row, images: byRequest.get(row.id) ?? [] }));
}
