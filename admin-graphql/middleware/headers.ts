/** Headers of every answer: nothing is cached but the page's own files, nothing is framed, nothing is guessed. */
import type { Middleware } from 'koa';
import { PAGE_POLICY } from '../ruru.ts';

export const setHeaders: Middleware = async (ctx, next) => {
  ctx.set({
    'cache-control': ctx.path.startsWith('/ruru-static/') ? 'private, max-age=3600' : 'no-store',
    'content-security-policy': PAGE_POLICY,
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  });
  await next();
};
