/** `/v1/images/characters`: the public ones for a picker, registering one, its picture, removing one of the caller's own. */
import { LRUCache } from 'lru-cache';
import { v7 as uuidv7 } from 'uuid';
import type { AssetFile } from '../../../core/assets/files.ts';
import { ServiceError } from '../../../core/errors.ts';
import { serveAsset } from '../../assets.ts';
import { type Context, callerOf, type Handler } from '../../context.ts';
import {
  countPublicCharacters,
  findCharacterPicture,
  listPublicCharacters,
  type NewCharacter,
  registerCharacter,
  removeCharacter,
} from '../../data/characters.ts';
import { readJsonBody } from '../../json-body.ts';
import { idOf, MAX_OFFSET, wholeNumber } from '../../parameters.ts';
import { answerPublicRead } from '../../public-read.ts';
import { CharacterRequest } from '../../schemas/gallery.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { requireBase64 } from './base64.ts';
import { characterPictureUrl, characterView } from './gallery-view.ts';
import { lookAtPicture } from './read.ts';

const DEFAULT_PAGE = 20;
const MAX_PAGE = 100;
const MAX_AGE_SECONDS = 30;
/** Callers' caches keep a page for longer. */
const COUNT_TTL_MS = 10_000;
/** At a time, and as many may be registered in 24 hours, whether they are removed again or not. */
const MAX_CHARACTERS_AN_ACCOUNT = 100;
const MAX_PICTURE_BYTES = 10 * 1024 * 1024;
/** The picture as base64, and the texts. */
const MAX_BODY_BYTES = 15 * 1024 * 1024;

const validate = makeValidator(CharacterRequest);

/** GET /v1/images/characters */
export function listCharacters({ pool, config }: Services): Handler {
  const counted = new LRUCache<'all', { readonly total: number }>({
    max: 1,
    ttl: COUNT_TTL_MS,
    fetchMethod: async () => ({ total: await countPublicCharacters(pool) }),
  });
  return async (ctx) => {
    const limit = wholeNumber(ctx, 'limit', DEFAULT_PAGE, 1, MAX_PAGE);
    const offset = wholeNumber(ctx, 'offset', 0, 0, MAX_OFFSET);
    const items = await listPublicCharacters(pool, { limit, offset });
    const { total } = await counted.forceFetch('all');
    const view = items.map((character) => ({
      ...characterView(character),
      image_url: character.hasPicture ? characterPictureUrl(ctx, config, character.id) : null,
    }));
    answerPublicRead(ctx, { items: view, total, limit, offset }, MAX_AGE_SECONDS, {
      addressedBy: config,
    });
  };
}

/** GET /v1/images/characters/{id}/image: of a public one, by its id or slug. */
export function getCharacterImage(services: Services): Handler {
  return async (ctx) => {
    const picture = await findCharacterPicture(services.pool, String(ctx.params.id));
    await serveAsset(ctx, services, picture, { isPublic: true });
  };
}

/** POST /v1/images/characters: free. */
export function postCharacter(services: Services): Handler {
  const { bodyBudget, files, pool } = services;
  return async (ctx) => {
    const { character, picture } = await bodyBudget.withRoom(ctx, MAX_BODY_BYTES, () => read(ctx, services));
    let isRegistered = false;
    try {
      const outcome = await registerCharacter(pool, character, picture, MAX_CHARACTERS_AN_ACCOUNT);
      if (outcome === 'slug_taken')
        throw new ServiceError('invalid_parameter', { param: 'slug', reason: 'taken' });
      if (outcome === 'unknown_payee')
        throw new ServiceError('invalid_parameter', { param: 'payee.account_id', reason: 'unknown' });
      if (outcome === 'too_many' || outcome === 'too_many_a_day') {
        throw new ServiceError('invalid_parameter', {
          param: 'slug',
          reason: outcome === 'too_many' ? 'too_many_characters' : 'too_many_characters_a_day',
          maximum: MAX_CHARACTERS_AN_ACCOUNT,
        });
      }
      isRegistered = true;
    } finally {
      if (!isRegistered && picture !== undefined) await files.discard([picture.id]);
    }
    ctx.body = ownView(ctx, services, character, picture);
  };
}

/** DELETE /v1/images/characters/{id}: pictures that were made of it stay. */
export function deleteCharacter({ pool }: Services): Handler {
  return async (ctx) => {
    const id = idOf(ctx);
    if (!(await removeCharacter(pool, callerOf(ctx).accountId, id))) throw new ServiceError('not_found');
    ctx.body = { char_id: id, object: 'character.deleted', deleted: true };
  };
}

/** Check 5. The picture is put: not shown yet, and the caller's to discard. */
async function read(
  ctx: Context,
  services: Services,
): Promise<{ character: NewCharacter; picture: AssetFile | undefined }> {
  const body = validate((await readJsonBody(ctx, MAX_BODY_BYTES)).value);
  const { accountId } = callerOf(ctx);
  const royaltyBps = body.royalty_bps ?? 0;
  if (royaltyBps > 0 && body.payee == null) throw new ServiceError('invalid_parameter', { param: 'payee' });
  const nameEn = body.name.en ?? body.name.ja ?? '';
  const character: NewCharacter = {
    id: uuidv7(),
    accountId,
    slug: body.slug,
    nameJa: body.name.ja ?? nameEn,
    nameEn,
    prompt: body.prompt,
    isPublic: body.public ?? false,
    payeeAccountId: body.payee?.account_id?.toLowerCase() ?? null,
    payeeSubject: body.payee?.subject ?? null,
    royaltyBps,
  };
  if (body.reference_image == null) return { character, picture: undefined };
  const bytes = requireBase64(body.reference_image, 'reference_image', MAX_PICTURE_BYTES);
  const { contentType, width, height } = await lookAtPicture('reference_image', bytes);
  const [picture] = await services.files.put({ accountId, requestId: null }, [
    {
      kind: 'character',
      position: 0,
      contentType,
      body: bytes,
      maxBytes: MAX_PICTURE_BYTES,
      details: { width, height },
    },
  ]);
  return { character, picture };
}

function ownView(
  ctx: Context,
  { config }: Pick<Services, 'config'>,
  character: NewCharacter,
  picture: AssetFile | undefined,
): Record<string, unknown> {
  const { payeeAccountId, payeeSubject } = character;
  return {
    object: 'character',
    ...characterView(character),
    prompt: character.prompt,
    public: character.isPublic,
    // others can see it only where it is public
    image_url:
      picture === undefined || !character.isPublic ? null : characterPictureUrl(ctx, config, character.id),
    reference_sha256: picture?.sha256 ?? null,
    payee:
      payeeAccountId !== null
        ? { account_id: payeeAccountId }
        : payeeSubject !== null
          ? { subject: payeeSubject }
          : null,
    royalty_bps: character.royaltyBps,
  };
}
