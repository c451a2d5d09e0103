/** GET /v1/images/gallery and /v1/images/gallery/{id}: what its makers have published, without a key. */
import { ServiceError } from '../../../core/errors.ts';
import { serveAsset } from '../../assets.ts';
import type { Handler } from '../../context.ts';
import { findPublicCharacter } from '../../data/characters.ts';
import { findGalleryFile, listGallery } from '../../data/gallery.ts';
import { idOf, MAX_OFFSET, text, wholeNumber } from '../../parameters.ts';
import { answerPublicRead } from '../../public-read.ts';
import type { Services } from '../../services.ts';
import { galleryItemView } from './gallery-view.ts';

const DEFAULT_PAGE = 20;
const MAX_PAGE = 100;
const MAX_AGE_SECONDS = 10;
const MAX_SLUG = 64;

export function getGallery({ pool, config }: Services): Handler {
  return async (ctx) => {
    const limit = wholeNumber(ctx, 'limit', DEFAULT_PAGE, 1, MAX_PAGE);
    const offset = wholeNumber(ctx, 'offset', 0, 0, MAX_OFFSET);
    const wanted = text(ctx, 'character', MAX_SLUG);
    const character = wanted === undefined ? undefined : await findPublicCharacter(pool, wanted);
    if (wanted !== undefined && character === undefined)
      throw new ServiceError('unknown_character', { param: 'character' });
    const { items, total } = await listGallery(pool, { characterId: character?.id ?? null, limit, offset });
    answerPublicRead(
      ctx,
      { items: items.map((item) => galleryItemView(ctx, config, item)), total, limit, offset },
      MAX_AGE_SECONDS,
      { addressedBy: config },
    );
  };
}

/** 404 for what is not published, also when its owner took it back before it was deleted; 410 for what was deleted or taken down while it was. */
export function getGalleryFile(services: Services): Handler {
  return async (ctx) => {
    const file = await findGalleryFile(services.pool, idOf(ctx));
    await serveAsset(ctx, services, file, { isPublic: true });
  };
}
