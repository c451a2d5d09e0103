/** GET /v1/images: the caller's own generations whose pictures are kept, newest first. */
import { endOf } from '../../assets.ts';
import { callerOf, type Handler } from '../../context.ts';
import { listGenerations } from '../../data/images.ts';
import { uuid, wholeNumber } from '../../parameters.ts';
import type { Services } from '../../services.ts';
import { generationView } from './view.ts';

const DEFAULT_PAGE = 20;
const MAX_PAGE = 100;

export function listImages({ pool, config }: Services): Handler {
  return async (ctx) => {
    const limit = wholeNumber(ctx, 'limit', DEFAULT_PAGE, 1, MAX_PAGE);
    const rows = await listGenerations(pool, {
      accountId: callerOf(ctx).accountId,
      before: uuid(ctx, 'cursor'),
      limit: limit + 1,
    });
    const page = rows.slice(0, limit);
    const hasMore = rows.length > limit;
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = {
      object: 'list',
      data: page.map((generation) => generationView(ctx, config, generation)),
      has_more: hasMore,
      // pictures are listed, each generation by its first that is kept
      next_cursor: hasMore
        ? (page.at(-1)?.images.find((image) => endOf(image) === undefined)?.id ?? null)
        : null,
    };
  };
}
