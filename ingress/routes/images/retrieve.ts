/** GET /v1/images/{id}: what is known of a generation of the caller's own, without its pictures. */
import { ServiceError } from '../../../core/errors.ts';
import { callerOf, type Handler } from '../../context.ts';
import { findGeneration } from '../../data/images.ts';
import { idOf } from '../../parameters.ts';
import type { Services } from '../../services.ts';
import { requireAnyLive } from './presentation.ts';
import { generationView } from './view.ts';

export function retrieveImage({ pool, config }: Services): Handler {
  return async (ctx) => {
    const generation = await findGeneration(pool, idOf(ctx), callerOf(ctx).accountId);
    if (generation === undefined) throw new ServiceError('not_found');
    if (generation.state === 'succeeded') requireAnyLive(generation.images);
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = generationView(ctx, config, generation);
  };
}
