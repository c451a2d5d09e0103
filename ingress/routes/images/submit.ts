/**
 * What generations and edits have in common once their body has been read: model, price, the look into the cache, storing the
 * caller's pictures, and then the common paid path.
 */
import { ServiceError } from '../../../core/errors.ts';
import { IMAGE_TASK, type ImageJobInput, type StoredInput } from '../../../core/images.ts';
import { quoteImages } from '../../../core/pricing.ts';
import { type Context, callerOf } from '../../context.ts';
import type { Generation } from '../../data/images.ts';
import { runPaidWithInputs, storeInputs } from '../../inputs.ts';
import { defaultModel, imagePriceOf, requireModel } from '../../models.ts';
import { type PaidRequest, refuseEarly } from '../../paid.ts';
import type { Services } from '../../services.ts';
import { cacheKeyOf, findCached } from './cache.ts';
import { type CastBody, withCharacter } from './character.ts';
import { answerFromCache, makePresentation, type Wanted } from './presentation.ts';
import type { ImageBody } from './read.ts';

type Operation = ImageJobInput['operation'];

/** What remains of a body when its bytes have gone to the store. */
type Prepared =
  | {
      readonly kind: 'cached';
      readonly found: Generation;
      readonly wanted: Wanted & { readonly isStream: boolean };
    }
  | { readonly kind: 'paid'; readonly request: PaidRequest; readonly inputs: readonly StoredInput[] };

/** `read` ends with check 5; the pictures it gives are let go before the provider is waited for. */
export async function submitImages(
  ctx: Context,
  services: Services,
  operation: Operation,
  read: () => Promise<ImageBody>,
): Promise<void> {
  const { maxBodyBytes, maxImageBodyBytes } = services.config;
  const maxBytes = operation === 'edit' ? maxImageBodyBytes : maxBodyBytes;
  const prepared = await services.bodyBudget.withRoom(ctx, maxBytes, () =>
    prepare(ctx, services, operation, read),
  );
  if (prepared.kind === 'cached') {
    await answerFromCache(ctx, services, prepared.found, { ...prepared.wanted, operation });
    return;
  }
  await runPaidWithInputs(ctx, services, prepared.request, prepared.inputs);
}

async function prepare(
  ctx: Context,
  services: Services,
  operation: Operation,
  read: () => Promise<ImageBody>,
): Promise<Prepared> {
  const body = await withCharacter(ctx, services, await read());
  const caller = callerOf(ctx);
  const at = services.now();
  const catalogue = services.catalogue.current();
  const modelId = body.model ?? defaultModel(catalogue, 'image', at)?.id;
  if (modelId === undefined) throw new ServiceError('invalid_parameter', { param: 'model' });
  const model = requireModel(catalogue, modelId, 'image', caller);
  const price = imagePriceOf(model, at, body);
  const priceAp = price.ap ?? 0;
  const isTest = caller.prefix === 'svc_test_';
  const wanted: Wanted = { count: body.count, isUrlOnly: body.isUrlOnly };

  const cacheKey = body.mayBeCached ? cacheKeyOf(operation, modelId, price, isTest, body) : null;
  const found = cacheKey === null ? undefined : await findCached(ctx, services, cacheKey, body.digest);
  if (found !== undefined) return { kind: 'cached', found, wanted: { ...wanted, isStream: body.isStream } };

  const request: Omit<PaidRequest, 'input'> = {
    area: 'images',
    task: IMAGE_TASK,
    modelId,
    price,
    quote: quoteImages(priceAp, body.count),
    timeoutSeconds: services.config.imageTimeoutSeconds,
    isStream: body.isStream,
    rawBody: body.digest,
    stopWhenCallerLeaves: false,
    presentation: makePresentation(services, wanted),
  };
  // nobody's pictures are put who cannot pay for what comes of them
  if (body.pictures.length > 0) await refuseEarly(ctx, services, { ...request, input: null });
  // the caller's pictures, then the mask
  const sent = body.mask === undefined ? body.pictures : [...body.pictures, body.mask];
  const inputs = await storeInputs(ctx, services, sent);
  const input: ImageJobInput = {
    operation,
    isTest,
    priceAp,
    prompt: body.prompt,
    count: body.count,
    size: price.size,
    quality: price.quality === '' ? null : price.quality,
    background: body.background ?? null,
    outputFormat: body.outputFormat,
    outputCompression: body.outputCompression ?? null,
    moderation: body.moderation ?? null,
    user: body.user ?? null,
    seed: body.seed ?? null,
    inputFidelity: body.inputFidelity ?? null,
    partialImages: body.partialImages,
    images: [...inputs.slice(0, body.pictures.length), ...pictureOf(body)],
    mask: body.mask === undefined ? null : (inputs[body.pictures.length] ?? null),
    characterId: body.character?.id ?? null,
    cacheKey,
  };
  return { kind: 'paid', inputs, request: { ...request, input } };
}

/** The character's picture, behind those of the caller: a mask is for the first. */
function pictureOf({ character }: CastBody): StoredInput[] {
  if (character?.picture === undefined) return [];
  const { id, contentType, byteLength } = character.picture;
  return [{ id, contentType, byteLength, kind: 'character' }];
}
