/** Gallery items and characters in the wire's shapes, and which id a published or certified picture has for its callers. */
import { randomBytes } from 'node:crypto';
import type { Config } from '../../../core/config.ts';
import { ServiceError } from '../../../core/errors.ts';
import { requireLive } from '../../assets.ts';
import { type Context, callerOf } from '../../context.ts';
import type { Asset } from '../../data/assets.ts';
import type { CharacterName } from '../../data/characters.ts';
import type { GalleryItem, LicensedImage } from '../../data/gallery.ts';
import { findGeneration, findImage } from '../../data/images.ts';
import { publicUrl } from '../../public-url.ts';
import type { Services } from '../../services.ts';
import { CURRENT_TERMS } from './license-terms.ts';

type Wire = Record<string, unknown>;

const LICENSE_TOKEN_BYTES = 24;

export function characterView({ id, slug, nameJa, nameEn }: CharacterName): Wire {
  return { char_id: id, slug, name: { ja: nameJa, en: nameEn } };
}

export function characterPictureUrl(ctx: Context, config: Config, id: string): string {
  return publicUrl(ctx, config, `/v1/images/characters/${id}/image`);
}

export function galleryItemView(
  ctx: Context,
  config: Config,
  { character, licenseToken, ...item }: Omit<GalleryItem, 'licenseToken'> & { licenseToken?: string },
): Wire {
  return {
    id: item.imageId,
    url: publicUrl(ctx, config, `/v1/images/gallery/${item.imageId}`),
    width: item.width,
    height: item.height,
    model: item.modelId,
    character: character === null ? null : characterView(character),
    published_at: item.publishedAt.toISOString(),
    ...(licenseToken === undefined ? {} : { license_token: licenseToken }),
  };
}

export interface OwnImage {
  readonly asset: Asset;
  readonly licensed: LicensedImage;
}

/**
 * A picture of the caller's own, by its id or that of its generation (then the selected one, else the first); throws `not_found`, `gone`
 * or `expired`. Outside it is known by its generation's id where that has no other picture, as in the answer that made it.
 */
export async function requireOwnImage(
  ctx: Context,
  { pool }: Pick<Services, 'pool'>,
  id: string,
): Promise<OwnImage> {
  const { accountId } = callerOf(ctx);
  const asset = requireLive(await findImage(pool, id, accountId));
  const generation =
    asset.requestId === null ? undefined : await findGeneration(pool, asset.requestId, accountId);
  if (generation === undefined) throw new ServiceError('not_found');
  return {
    asset,
    licensed: {
      asset_id: asset.id,
      image_id: generation.images.length === 1 ? generation.id : asset.id,
      model_id: generation.modelId,
      license_token: `lic_${randomBytes(LICENSE_TOKEN_BYTES).toString('base64url')}`,
      license_terms: CURRENT_TERMS,
    },
  };
}
