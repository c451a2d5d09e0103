/**
 * The same question again is free: what makes an image result, as one hash, and the look for a result that is still kept. A caller
 * who wants another picture says `cache: false`, which neither looks nor leaves anything to be found.
 */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { assetKey } from '../../../core/assets/keys.ts';
import { AssetMissing } from '../../../core/assets/store.ts';
import { ServiceError } from '../../../core/errors.ts';
import type { Price } from '../../../core/pricing.ts';
import { type Context, callerOf } from '../../context.ts';
import { findCachedGeneration, type Generation } from '../../data/images.ts';
import { claimCachedAnswer } from '../../data/requests.ts';
import { idempotencyOf } from '../../paid.ts';
import type { Services } from '../../services.ts';
import { refusedKey } from '../../submit.ts';
import type { CastBody } from './character.ts';

/** Changed whenever the same parameters come to mean another picture. */
const CACHE_VERSION = 1;

/**
 * SHA-256, hexadecimal, of what the picture depends on. Not of how it is handed over (stream, partial pictures, response_format),
 * nor of `user`, which is for the provider's records. The account is no part of it: results are looked for per account.
 */
export function cacheKeyOf(
  operation: 'generation' | 'edit',
  modelId: string,
  price: Pick<Price, 'size' | 'quality'>,
  isTest: boolean,
  body: CastBody,
): string {
  const question = {
    version: CACHE_VERSION,
    operation,
    model: modelId,
    isTest, // answered by the sandbox: nobody else may be given that
    prompt: body.prompt,
    count: body.count,
    size: price.size,
    quality: price.quality,
    background: body.background ?? 'auto',
    outputFormat: body.outputFormat,
    outputCompression: body.outputCompression ?? null,
    moderation: body.moderation ?? 'auto',
    seed: body.seed ?? null,
    inputFidelity: body.inputFidelity ?? null,
    character: body.character?.id ?? null,
    characterPicture: body.character?.picture?.sha256 ?? null,
    pictures: body.pictures.map(({ sha256 }) => sha256),
    mask: body.mask?.sha256 ?? null,
  };
  return createHash('sha256')
    .update(canonicalize(question) ?? '')
    .digest('hex');
}

/**
 * A result with all its pictures. None under an Idempotency-Key of a request of its own: then that request answers. Takes the key
 * otherwise; throws what submitting throws for a key that is another body's. A store that fails is `generation_failed`: a caller who
 * has paid for the answer is not to pay again because it cannot be read now.
 */
export async function findCached(
  ctx: Context,
  { pool, files, logger }: Pick<Services, 'pool' | 'files' | 'logger'>,
  cacheKey: string,
  rawBody: Buffer,
): Promise<Generation | undefined> {
  const { accountId } = callerOf(ctx);
  const idempotency = idempotencyOf(ctx, rawBody);
  const found = await findCachedGeneration(pool, accountId, cacheKey);
  if (found === undefined || !(await areInStore(found, { files, logger }))) return undefined;
  if (idempotency === undefined) return found;
  const { outcome, otherRequestId } = await claimCachedAnswer(pool, accountId, idempotency, found.id);
  switch (outcome) {
    case 'cached_again':
      ctx.set('Idempotency-Replayed', 'true');
      return found;
    case 'cached':
      return found;
    case 'replay':
      return undefined;
    default:
      throw refusedKey(outcome, otherRequestId);
  }
}

async function areInStore(
  { id, images }: Generation,
  { files, logger }: Pick<Services, 'files' | 'logger'>,
): Promise<boolean> {
  try {
    for (const image of images) (await files.store.open(assetKey(image), FIRST_BYTES)).destroy();
    return true;
  } catch (error) {
    logger.error({ err: error, requestId: id }, 'a picture is not in the store');
    if (error instanceof AssetMissing) return false; // it is made anew
    throw new ServiceError('generation_failed', {}, { cause: error, retryAfterSeconds: STORE_PAUSE_SECONDS });
  }
}

const FIRST_BYTES = { start: 0, end: 1 };
/** A caller tries again after this when the store fails. */
const STORE_PAUSE_SECONDS = 5;
