/**
 * GET /v1/images/candidate/{id}: a picture small and marked, to choose by. Made anew for each caller who has not got it yet: it is
 * looked at once or twice, and the picture itself is at /v1/images/file/{id}.
 */
import { Semaphore } from 'async-mutex';
import { MAX_PICTURE_BYTES } from '../../../core/images.ts';
import { makePreview } from '../../../core/pictures.ts';
import { readAsset, requireLive } from '../../assets.ts';
import { callerOf, type Handler } from '../../context.ts';
import { findImage } from '../../data/images.ts';
import { hasAlready } from '../../http-conditions.ts';
import { idOf } from '../../parameters.ts';
import type { Services } from '../../services.ts';

const MAX_AGE_SECONDS = 3600;
/** Pictures in this process's memory for their previews; as many as are worked on at a time (core/pictures.ts). */
const MAX_AT_ONCE = 2;
const places = new Semaphore(MAX_AT_ONCE);

export function getImageCandidate(services: Services): Handler {
  return async (ctx) => {
    const image = requireLive(await findImage(services.pool, idOf(ctx), callerOf(ctx).accountId));
    const tag = `"preview-${image.sha256.slice(0, 32)}"`;
    ctx.status = 200;
    ctx.set('ETag', tag);
    ctx.set('Cache-Control', `private, max-age=${MAX_AGE_SECONDS}`);
    if (hasAlready(ctx, tag)) {
      ctx.status = 304;
      return;
    }
    const preview = await places.runExclusive(async () =>
      makePreview(await readAsset(services, image, MAX_PICTURE_BYTES)),
    );
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.type = preview.contentType;
    ctx.body = preview.bytes;
  };
}
