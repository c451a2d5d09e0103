/** What the areas' caches have in common: who may be answered from one, and whether the files of an answer are really there. */
import { assetKey } from '../core/assets/keys.ts';
import { AssetMissing } from '../core/assets/store.ts';
import { ServiceError } from '../core/errors.ts';
import { type Context, callerOf } from './context.ts';
import type { Asset } from './data/assets.ts';
import { claimCachedAnswer, hasIdempotencyKey } from './data/requests.ts';
import { idempotencyOf } from './paid.ts';
import type { Services } from './services.ts';
import { refusedKey } from './submit.ts';

/** Not under an Idempotency-Key that was used before: then that request answers. */
export async function mayBeAnsweredFromCache(
  ctx: Context,
  { pool }: Pick<Services, 'pool'>,
): Promise<boolean> {
  const key = ctx.headers['idempotency-key'];
  return typeof key !== 'string' || !(await hasIdempotencyKey(pool, callerOf(ctx).accountId, key));
}

/**
 * Takes the caller's Idempotency-Key for what was found, made by this request. False: the key is that of a request of its own, which
 * answers. Throws what submitting throws for a key that is another body's.
 */
export async function claimForCached(
  ctx: Context,
  { pool }: Pick<Services, 'pool'>,
  requestId: string,
  rawBody: Buffer,
): Promise<boolean> {
  const idempotency = idempotencyOf(ctx, rawBody);
  if (idempotency === undefined) return true;
  const { outcome, otherRequestId } = await claimCachedAnswer(
    pool,
    callerOf(ctx).accountId,
    idempotency,
    requestId,
  );
  if (outcome === 'cached_again') ctx.set('Idempotency-Replayed', 'true');
  if (outcome === 'cached' || outcome === 'cached_again') return true;
  if (outcome === 'replay') return false;
  throw refusedKey(outcome, otherRequestId);
}

/**
 * What is lost is no answer: it is made anew. A store that fails otherwise is `generation_failed`: who has paid for the answer is not
 * to pay again because it cannot be read just now.
 */
export async function areReadable(
  { files, logger }: Pick<Services, 'files' | 'logger'>,
  assets: readonly Asset[],
): Promise<boolean> {
  try {
    for (const asset of assets) (await files.store.open(assetKey(asset), FIRST_BYTES)).destroy();
    return true;
  } catch (error) {
    logger.error({ err: error, requestId: assets[0]?.requestId }, 'a file is not in the store');
    if (error instanceof AssetMissing) return false;
    throw new ServiceError('generation_failed', {}, { cause: error, retryAfterSeconds: STORE_PAUSE_SECONDS });
  }
}

const FIRST_BYTES = { start: 0, end: 1 };
/** A caller tries again after this when the store fails. */
const STORE_PAUSE_SECONDS = 5;
