/**
 * The same question again is free: what makes an image result, as one hash, and the look for a result that is still kept. A caller
 * who wants another picture says `cache: false`, which neither looks nor leaves anything to be found.
 */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Price } from '../../../core/pricing.ts';
import { type Context, callerOf } from '../../context.ts';
import { findCachedGeneration, type Generation } from '../../data/images.ts';
import { areReadable, claimForCached } from '../../result-cache.ts';
import type { Services } from '../../services.ts';
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

/** A result with all its pictures, under the caller's Idempotency-Key. */
export async function findCached(
  ctx: Context,
  services: Pick<Services, 'pool' | 'files' | 'logger'>,
  cacheKey: string,
  rawBody: Buffer,
): Promise<Generation | undefined> {
  const { accountId } = callerOf(ctx);
  const found = await findCachedGeneration(services.pool, accountId, cacheKey);
  if (found === undefined || !(await areReadable(services, found.images))) return undefined;
  return (await claimForCached(ctx, services, found.id, rawBody)) ? found : undefined;
}
