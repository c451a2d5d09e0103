/** GET /v1/images/file/{id}: a picture, by its own id or by that of its generation (then the first of it). */
import { serveAsset } from '../../assets.ts';
import { callerOf, type Handler } from '../../context.ts';
import { findImage } from '../../data/images.ts';
import { idOf } from '../../parameters.ts';
import type { Services } from '../../services.ts';

export function getImageFile(services: Services): Handler {
  return async (ctx) => {
    await serveAsset(ctx, services, await findImage(services.pool, idOf(ctx), callerOf(ctx).accountId));
  };
}
