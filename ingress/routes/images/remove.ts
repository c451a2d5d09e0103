/** DELETE /v1/images/{id}: all pictures of a generation of the caller's own, from this moment on 410. Nothing is paid back. */
import { ServiceError } from '../../../core/errors.ts';
import { callerOf, type Handler } from '../../context.ts';
import { deleteAssets } from '../../data/assets.ts';
import { findGeneration } from '../../data/images.ts';
import { idOf } from '../../parameters.ts';
import type { Services } from '../../services.ts';
import { requireAllLive } from './presentation.ts';

export function removeImage({ pool }: Services): Handler {
  return async (ctx) => {
    const { accountId } = callerOf(ctx);
    const generation = await findGeneration(pool, idOf(ctx), accountId);
    // one that is under way is cancelled (POST /v1/requests/{id}/cancel), not deleted
    if (generation === undefined || generation.state !== 'succeeded') throw new ServiceError('not_found');
    requireAllLive(generation.images);
    const deleted = await deleteAssets(
      pool,
      accountId,
      generation.images.map(({ id }) => id),
    );
    if (deleted.length === 0) throw new ServiceError('gone'); // by somebody else, a moment ago
    ctx.body = { id: generation.id, object: 'image.deleted', deleted: true };
  };
}
