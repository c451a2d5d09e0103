/** What the areas' caches have in common: who may be answered from one, and whether the files of an answer are really there. */
import { assetKey } from '../core/assets/keys.ts';
import { type Context, callerOf } from './context.ts';
import type { Asset } from './data/assets.ts';
import { hasIdempotencyKey } from './data/requests.ts';
import type { Services } from './services.ts';

/** Not under an Idempotency-Key that was used before: then that request answers. */
export async function mayBeAnsweredFromCache(
  ctx: Context,
  { pool }: Pick<Services, 'pool'>,
): Promise<boolean> {
  const key = ctx.headers['idempotency-key'];
  return typeof key !== 'string' || !(await hasIdempotencyKey(pool, callerOf(ctx).accountId, key));
}

/** What cannot be read is no answer: it is made anew. */
export async function areReadable(
  { files, logger }: Pick<Services, 'files' | 'logger'>,
  assets: readonly Asset[],
): Promise<boolean> {
  try {
    for (const asset of assets) (await files.store.open(assetKey(asset), FIRST_BYTES)).destroy();
    return true;
  } catch (error) {
    logger.error({ err: error, requestId: assets[0]?.requestId }, 'a file is not in the store');
    return false;
  }
}

const FIRST_BYTES = { start: 0, end: 1 };
