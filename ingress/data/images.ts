/**
 * Generations as their owner finds them again: the request, and its pictures as long as they are kept. Everything an answer says is
 * in these rows, so that it can be given long after the stored answer is gone.
 */
import type { Pool } from '../../core/database.ts';
import { IMAGE_TASK } from '../../core/images.ts';
import type { RequestState } from './requests.ts';

export interface ImageRow {
  readonly id: string;
  readonly contentType: string;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
  /** What the task noted (workers/tasks/images/generate.ts). */
  readonly details: ImageDetails;
  readonly expiresAt: Date | null;
  readonly deletedAt: Date | null;
}

export interface ImageDetails {
  readonly width: number;
  readonly height: number;
  readonly quality: string | null;
  readonly background: string | null;
  readonly revisedPrompt: string | null;
}

export interface Generation {
  readonly id: string;
  readonly modelId: string;
  readonly state: RequestState;
  readonly costAp: number | null;
  readonly usage: Readonly<Record<string, unknown>> | null;
  readonly errorCode: string | null;
  readonly errorDetails: Record<string, unknown> | null;
  readonly createdAt: Date;
  /** In the order they were made. */
  readonly images: readonly ImageRow[];
}

const IMAGE = `json_build_object('id', a.id, 'contentType', a.content_type, 'bytes', a.bytes,
  'sha256', encode(a.sha256, 'hex'), 'details', a.details, 'expiresAt', a.expires_at, 'deletedAt', a.deleted_at)`;
const IMAGES = `(select coalesce(json_agg(${IMAGE} order by a.position), '[]') from app.assets a
    where a.request_id = q.id and a.kind = 'image' and a.state = 'stored') as images`;
const COLUMNS = `q.id, q.model_id as "modelId", q.state, q.cost_ap as "costAp", q.usage, q.error_code as "errorCode",
  q.error_details as "errorDetails", q.created_at as "createdAt", ${IMAGES}`;

type JsonRow<Row> = Omit<Row, 'expiresAt' | 'deletedAt'> & { expiresAt: string | null; deletedAt: string | null };
type GenerationJson = Omit<Generation, 'images'> & { images: JsonRow<ImageRow>[] };

const FIND_GENERATION = {
  name: 'find_generation',
  text: `select ${COLUMNS} from app.requests q where q.id = $1 and q.account_id = $2 and q.task = '${IMAGE_TASK}'`,
};

export async function findGeneration(
  pool: Pool,
  id: string,
  accountId: string,
): Promise<Generation | undefined> {
  const { rows } = await pool.query<GenerationJson>({ ...FIND_GENERATION, values: [id, accountId] });
  return rows[0] === undefined ? undefined : generationOf(rows[0]);
}

/** The generation that answers the same question; whether its pictures are still there is to be looked at. */
export async function findCachedGeneration(
  pool: Pool,
  accountId: string,
  cacheKey: string,
): Promise<Generation | undefined> {
  const { rows } = await pool.query<GenerationJson>({
    name: 'find_cached_generation',
    text: `select ${COLUMNS} from app.result_cache c join app.requests q on q.id = c.request_id
      where c.account_id = $1 and c.cache_key = decode($2, 'hex') and c.expires_at > now()`,
    values: [accountId, cacheKey],
  });
  return rows[0] === undefined ? undefined : generationOf(rows[0]);
}


/** The picture of this id, or the first of the generation of this id. */
export async function findImage(pool: Pool, id: string, accountId: string): Promise<ImageRow | undefined> {
  const { rows } = await pool.query<{ image: JsonRow<ImageRow> }>({
    name: 'find_image',
    text: `select image from (
        select ${IMAGE} as image, a.position from app.assets a
          where a.id = $1 and a.account_id = $2 and a.kind = 'image' and a.state = 'stored'
        union all
        select ${IMAGE} as image, a.position from app.assets a
          where a.request_id = $1 and a.account_id = $2 and a.kind = 'image' and a.state = 'stored'
      ) found order by position limit 1`,
    values: [id, accountId],
  });
  return rows[0] === undefined ? undefined : imageOf(rows[0].image);
}

/** Newest first: those whose first picture is kept. */
export async function listGenerations(
  pool: Pool,
  { accountId, before, limit }: { accountId: string; before: string | undefined; limit: number },
): Promise<Generation[]> {
  const { rows } = await pool.query<GenerationJson>({
    name: 'list_generations',
    text: `select ${COLUMNS}
      from (
        select f.id, f.request_id from app.assets f
          where f.account_id = $1 and f.kind = 'image' and f.id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
            and f.position = 0 and f.state = 'stored' and f.deleted_at is null and f.expires_at > now()
          order by f.id desc
          limit $3
      ) page
      join app.requests q on q.id = page.request_id
      order by page.id desc`,
    values: [accountId, before ?? null, limit],
  });
  return rows.map(generationOf);
}

/** Gone from this moment; those that were there to delete. */
export async function deleteImages(pool: Pool, accountId: string, ids: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'delete_assets',
    text: 'select id from app.delete_assets($1, $2::uuid[]) id',
    values: [accountId, ids],
  });
  return rows.map((row) => row.id);
}

function generationOf(row: GenerationJson): Generation {
  return { ...row, images: row.images.map(imageOf) };
}

function imageOf(row: JsonRow<ImageRow>): ImageRow {
  return { ...row, expiresAt: dateOf(row.expiresAt), deletedAt: dateOf(row.deletedAt) };
}

function dateOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
