/** The public gallery: its items, and putting pictures in and taking them back. */
import type { Pool } from '../../core/database.ts';
import type { Charge } from '../operation.ts';
import { ASSET_COLUMNS, type Asset } from './assets.ts';
import type { CharacterName, Page } from './characters.ts';
import type { SubmissionRow } from './submissions.ts';

export interface GalleryItem {
  /** As its callers know it. */
  readonly imageId: string;
  readonly modelId: string;
  readonly width: number;
  readonly height: number;
  /** Only one that is public. */
  readonly character: CharacterName | null;
  readonly publishedAt: Date;
  readonly licenseToken: string;
}

/** The picture as app.publish_image and app.certify_image are told of it. */
export interface LicensedImage {
  readonly asset_id: string;
  readonly image_id: string;
  readonly model_id: string;
  /** Taken where the picture has none yet. */
  readonly license_token: string;
  readonly license_terms: string;
}

const SHOWN_CHARACTER = `case when c.id is not null
    then json_build_object('id', c.id, 'slug', c.slug, 'nameJa', c.name_ja, 'nameEn', c.name_en) end`;
const ITEM = `select g.image_id as "imageId", g.model_id as "modelId", (a.details ->> 'width')::integer as width,
    (a.details ->> 'height')::integer as height, ${SHOWN_CHARACTER} as character, g.published_at as "publishedAt",
    l.token as "licenseToken"`;
const AROUND_IT = `join app.assets a on a.id = g.asset_id
    join app.licenses l on l.asset_id = g.asset_id
    left join app.characters c on c.id = g.character_id and c.is_public and c.removed_at is null`;

const pageOf = (condition: string) => `${ITEM}
  from (
    select * from app.gallery_items g
      where g.withdrawn_at is null and ${condition}
      order by g.published_at desc, g.asset_id desc
      limit $2 offset $3
  ) g
  ${AROUND_IT}
  order by g.published_at desc, g.asset_id desc`;
const LIST_ALL = { name: 'list_gallery', text: pageOf('$1::uuid is null') };
const LIST_OF_CHARACTER = { name: 'list_gallery_of_character', text: pageOf('g.character_id = $1') };
const COUNT = {
  name: 'count_gallery',
  text: `select t.items as total from app.gallery_totals t
    where t.character_id = coalesce($1::uuid, '00000000-0000-0000-0000-000000000000')`,
};

/** Newest first. What begins behind the last is not looked for. */
export async function listGallery(
  pool: Pool,
  {
    characterId,
    limit,
    offset,
  }: { readonly characterId: string | null; readonly limit: number; readonly offset: number },
): Promise<Page<GalleryItem>> {
  const counted = await pool.query<{ total: number }>({ ...COUNT, values: [characterId] });
  const total = counted.rows[0]?.total ?? 0;
  if (offset >= total) return { items: [], total };
  const { rows } = await pool.query<GalleryItem>({
    ...(characterId === null ? LIST_ALL : LIST_OF_CHARACTER),
    values: [characterId, limit, offset],
  });
  return { items: rows, total };
}

const FIND_ITEM = {
  name: 'find_gallery_item',
  text: `${ITEM} from app.gallery_items g ${AROUND_IT} where g.asset_id = $1`,
};

export async function findGalleryItem(pool: Pool, assetId: string): Promise<GalleryItem | undefined> {
  const { rows } = await pool.query<GalleryItem>({ ...FIND_ITEM, values: [assetId] });
  return rows[0];
}

const FIND_FILE = {
  name: 'find_gallery_file',
  text: `select ${ASSET_COLUMNS}
    from app.gallery_items g
    join app.assets a on a.id = g.asset_id
    where (g.asset_id = $1 or g.request_id = $1) and (g.withdrawn_at is null or g.withdrawn_at >= a.deleted_at)
    order by g.withdrawn_at is not null, a.is_selected desc, a.position
    limit 1`,
};

/** By the picture's id or its generation's: one that is published, or was when it was deleted. */
export async function findGalleryFile(pool: Pool, id: string): Promise<Asset | undefined> {
  const { rows } = await pool.query<Asset>({ ...FIND_FILE, values: [id] });
  return rows[0];
}

/** The columns of app.submit_answer that a caller is told of. */
export const OUTCOME_COLUMNS =
  'n, outcome, hold_ap, required_ap, available_ap, held_ap, cap_ap, resets_at, other_request_id';

/** `result`: the answer where this is charged for; the license's token is put into it. */
export async function publishImage(
  pool: Pool,
  { submission, initialGrantAp }: Charge,
  image: LicensedImage & { readonly published_at: string },
  result: object,
): Promise<SubmissionRow> {
  const { rows } = await pool.query<SubmissionRow>({
    name: 'publish_image',
    text: `select ${OUTCOME_COLUMNS} from app.publish_image($1, $2, $3, $4)`,
    values: [submission, JSON.stringify(image), JSON.stringify(result), initialGrantAp],
  });
  return rows[0] as SubmissionRow;
}

/** The picture of this id, or all of the generation of this id. Returns those that are out of the gallery now. */
export async function withdrawImages(pool: Pool, accountId: string, id: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'withdraw_images',
    text: 'select id from app.withdraw_images($1, $2) id',
    values: [accountId, id],
  });
  return rows.map((row) => row.id);
}
