/**
 * GET /v1/images/status/{id}: a generation collected later, by the id that its answer, or the header X-SVC-Image-Id of its stream,
 * gave. The answer itself once it is there (200), and until then how it stands (202).
 */
import { ServiceError } from '../../../core/errors.ts';
import { callerOf, type Handler } from '../../context.ts';
import { findGeneration } from '../../data/images.ts';
import { idOf, oneOf } from '../../parameters.ts';
import { publicUrl } from '../../public-url.ts';
import { errorView } from '../../results.ts';
import type { Services } from '../../services.ts';
import { announce, answerWithResult, requireAnyLive, resultOf } from './presentation.ts';
import { statusPath } from './view.ts';

export function getImageStatus(services: Services): Handler {
  const { pool, config } = services;
  return async (ctx) => {
    const isUrlOnly = oneOf(ctx, 'response_format', ['b64_json', 'url']) === 'url';
    const generation = await findGeneration(pool, idOf(ctx), callerOf(ctx).accountId);
    if (generation === undefined) throw new ServiceError('not_found');
    const { id, state } = generation;
    announce(ctx, id);
    ctx.set('Cache-Control', 'private, no-store');
    const status = { id, status: state, status_url: publicUrl(ctx, config, statusPath(id)) };
    if (state === 'queued' || state === 'running') {
      ctx.status = 202;
      ctx.set('Retry-After', '2');
      ctx.body = status;
      return;
    }
    if (state !== 'succeeded') {
      // the question how it went is answered well: what went wrong is part of the answer
      ctx.body = { ...status, ...errorView(generation, ctx.state.language) };
      return;
    }
    requireAnyLive(generation.images);
    ctx.set('x-svc-model', generation.modelId);
    await answerWithResult(ctx, services, resultOf(generation), { isUrlOnly, status: state });
  };
}
