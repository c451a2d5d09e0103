/**
 * POST and DELETE /v1/images/{id}/publish: a picture of the caller's own into the public gallery, and out of it. Paid once: a published
 * picture is published again, and one that was taken back shown again, for nothing. It does not expire as long as it is published.
 */
import { ServiceError } from '../../../core/errors.ts';
import { GALLERY_SUBMIT } from '../../../core/operations.ts';
import { callerOf, type Handler } from '../../context.ts';
import { findPublicCharacter } from '../../data/characters.ts';
import { findGalleryItem, publishImage, withdrawImages } from '../../data/gallery.ts';
import { readOptionalJsonBody } from '../../json-body.ts';
import { operationPrice, runOperation } from '../../operation.ts';
import { idOf } from '../../parameters.ts';
import { PublishRequest } from '../../schemas/gallery.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { galleryItemView, requireOwnImage } from './gallery-view.ts';
import { detailsOf } from './view.ts';

const TASK = 'images/publish';
const MAX_BODY_BYTES = 64 * 1024;

const validate = makeValidator(PublishRequest);

export function postPublish(services: Services): Handler {
  const { config, pool, balancesPool, now } = services;
  return async (ctx) => {
    const { raw, value } = await readOptionalJsonBody(ctx, MAX_BODY_BYTES);
    validate(value);
    const { asset, licensed } = await requireOwnImage(ctx, services, idOf(ctx));
    const price = operationPrice(services, GALLERY_SUBMIT);
    const { width, height, characterId } = detailsOf(asset);
    const character = characterId === undefined ? undefined : await findPublicCharacter(pool, characterId);
    const publishedAt = now();
    const result = {
      object: 'gallery.item',
      ...galleryItemView(ctx, config, {
        imageId: licensed.image_id,
        modelId: licensed.model_id,
        width,
        height,
        character: character ?? null,
        publishedAt,
      }),
      ap_cost: price.ap,
    };
    const image = { ...licensed, published_at: publishedAt.toISOString() };
    const outcome = await runOperation(
      ctx,
      services,
      { task: TASK, modelId: GALLERY_SUBMIT, price, rawBody: raw },
      (charge) => publishImage(balancesPool, charge, image, result),
    );
    if (outcome === undefined) return;
    const item = await findGalleryItem(pool, asset.id);
    if (item === undefined) throw new Error('a published picture is no item of the gallery');
    ctx.set('x-svc-model', GALLERY_SUBMIT);
    ctx.set('x-svc-ap-cost', '0');
    ctx.body = { object: 'gallery.item', ...galleryItemView(ctx, config, item), ap_cost: 0 };
  };
}

export function deletePublish({ pool }: Services): Handler {
  return async (ctx) => {
    const id = idOf(ctx);
    const withdrawn = await withdrawImages(pool, callerOf(ctx).accountId, id);
    if (withdrawn.length === 0) throw new ServiceError('not_found');
    ctx.body = { id, object: 'gallery.item', published: false };
  };
}
