/** GET /v1/images/beacon?p=/page: counts a view of a page, and answers 204 whatever the page is. It sets and reads no cookie. */
import type { Handler } from '../../context.ts';
import type { Services } from '../../services.ts';

export function getBeacon({ pageViews }: Services): Handler {
  return (ctx) => {
    const page = ctx.query.p;
    pageViews.count((Array.isArray(page) ? page[0] : page) ?? '');
    ctx.set('Cache-Control', 'no-store');
    ctx.status = 204;
  };
}
