/** Characters: those that callers may use, the public ones for a picker, and registering and removing them. */
import { type AssetFile, assetFileToJson } from '../../core/assets/files.ts';
import type { Pool } from '../../core/database.ts';
import { isId } from '../parameters.ts';
import { ASSET_COLUMNS, type Asset } from './assets.ts';

export interface NewCharacter {
  readonly id: string;
  readonly accountId: string;
  readonly slug: string;
  readonly nameJa: string;
  readonly nameEn: string;
  readonly prompt: string;
  readonly isPublic: boolean;
  readonly payeeAccountId: string | null;
  readonly payeeSubject: string | null;
  readonly royaltyBps: number;
}

/** As everybody may see it. */
export interface CharacterName {
  readonly id: string;
  readonly slug: string;
  readonly nameJa: string;
  readonly nameEn: string;
}

export interface UsableCharacter {
  readonly id: string;
  readonly prompt: string;
  readonly pictureId: string | null;
  readonly pictureType: string | null;
  readonly pictureBytes: number | null;
  /** Hexadecimal. */
  readonly pictureSha256: string | null;
}

const FIND_USABLE = {
  name: 'find_usable_character',
  text: `select c.id, c.prompt, a.id as "pictureId", a.content_type as "pictureType",
      a.bytes as "pictureBytes", encode(a.sha256, 'hex') as "pictureSha256"
    from app.characters c
    left join app.assets a on a.id = c.reference_asset_id and a.state = 'stored' and a.deleted_at is null
    where (c.id = $1 or c.slug = $2) and c.removed_at is null and (c.is_public or c.account_id = $3)`,
};

/** By id or slug: a public one, or the account's own. */
export async function findUsableCharacter(
  pool: Pool,
  idOrSlug: string,
  accountId: string,
): Promise<UsableCharacter | undefined> {
  const { rows } = await pool.query<UsableCharacter>({
    ...FIND_USABLE,
    values: [...idAndSlug(idOrSlug), accountId],
  });
  return rows[0];
}

const FIND_PUBLIC = {
  name: 'find_public_character',
  text: `select c.id, c.slug, c.name_ja as "nameJa", c.name_en as "nameEn"
    from app.characters c
    where (c.id = $1 or c.slug = $2) and c.removed_at is null and c.is_public`,
};

/** By id or slug. */
export async function findPublicCharacter(pool: Pool, idOrSlug: string): Promise<CharacterName | undefined> {
  const { rows } = await pool.query<CharacterName>({ ...FIND_PUBLIC, values: idAndSlug(idOrSlug) });
  return rows[0];
}

const FIND_PICTURE = {
  name: 'find_character_picture',
  text: `select ${ASSET_COLUMNS}
    from app.characters c
    join app.assets a on a.id = c.reference_asset_id and a.state = 'stored'
    where (c.id = $1 or c.slug = $2) and c.removed_at is null and c.is_public`,
};

/** Of a public character. */
export async function findCharacterPicture(pool: Pool, idOrSlug: string): Promise<Asset | undefined> {
  const { rows } = await pool.query<Asset>({ ...FIND_PICTURE, values: idAndSlug(idOrSlug) });
  return rows[0];
}

/** No slug looks like an id. */
function idAndSlug(text: string): [string | null, string | null] {
  return isId(text) ? [text, null] : [null, text];
}

export interface ListedCharacter extends CharacterName {
  readonly hasPicture: boolean;
}

const LIST_PUBLIC = {
  name: 'list_public_characters',
  text: `select c.id, c.slug, c.name_ja as "nameJa", c.name_en as "nameEn",
      c.reference_asset_id is not null as "hasPicture"
    from app.characters c
    where c.is_public and c.removed_at is null
    order by c.id desc
    limit $1 offset $2`,
};
const COUNT_PUBLIC = {
  name: 'count_public_characters',
  text: 'select count(*) as total from app.characters c where c.is_public and c.removed_at is null',
};

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly total: number;
}

/** Newest first. */
export async function listPublicCharacters(
  pool: Pool,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<ListedCharacter[]> {
  const { rows } = await pool.query<ListedCharacter>({ ...LIST_PUBLIC, values: [limit, offset] });
  return rows;
}

/** Reads all of them: not for each call. */
export async function countPublicCharacters(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ total: number }>(COUNT_PUBLIC);
  return rows[0]?.total ?? 0;
}

export type Registration = 'registered' | 'slug_taken' | 'too_many' | 'too_many_a_day' | 'unknown_payee';

/** With its picture, which was put before, from now on for everybody who may use the character. */
export async function registerCharacter(
  pool: Pool,
  character: NewCharacter,
  picture: AssetFile | undefined,
  maxAnAccount: number,
): Promise<Registration> {
  const { rows } = await pool.query<{ outcome: Registration }>({
    name: 'register_character',
    text: 'select app.register_character($1, $2, $3) as outcome',
    values: [
      JSON.stringify({
        id: character.id,
        account_id: character.accountId,
        slug: character.slug,
        name_ja: character.nameJa,
        name_en: character.nameEn,
        prompt: character.prompt,
        reference_asset_id: picture?.id,
        is_public: character.isPublic,
        payee_account_id: character.payeeAccountId,
        payee_subject: character.payeeSubject,
        royalty_bps: character.royaltyBps,
      }),
      picture === undefined ? null : JSON.stringify(assetFileToJson(picture)),
      maxAnAccount,
    ],
  });
  return rows[0]?.outcome as Registration;
}

/** Of the account's own. False: there is none of this id, or not any more. */
export async function removeCharacter(pool: Pool, accountId: string, id: string): Promise<boolean> {
  const { rows } = await pool.query<{ id: string | null }>({
    name: 'remove_character',
    text: 'select (app.remove_character($1, $2)).id as id',
    values: [accountId, id],
  });
  return rows[0]?.id != null;
}
