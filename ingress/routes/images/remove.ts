/**
 * DELETE /v1/images/{id}: a picture of the caller's own, by its id, or all those of a generation that are still there, by the
 * generation's. From this moment on they are 410. Nothing is paid back.
 */
import { ServiceError } from '../../../core/errors.ts';
import { callerOf, type Handler } from '../../context.ts';
import { deleteAssets } from '../../data/assets.ts';
import { findOwnImages } from '../../data/images.ts';
import { idOf } from '../../parameters.ts';
import type { Services } from '../../services.ts';
import { requireAnyLive } from './presentation.ts';

export function removeImage({ pool }: Services): Handler {
  return async (ctx) => {
    const { accountId } = callerOf(ctx);
    const id = idOf(ctx);
    const images = await findOwnImages(pool, id, accountId);
    // one that is under way is cancelled (POST /v1/requests/{id}/cancel), not deleted
    if (images.length === 0) throw new ServiceError('not_found');
    requireAnyLive(images);
    const deleted = await deleteAssets(
      pool,
      accountId,
      images.map((image) => image.id),
    );
    if (deleted.length === 0) throw new ServiceError('gone'); // by somebody else, a moment ago
    ctx.body = { id, object: 'image.deleted', deleted: true };
  };
}
