/**
 * The outermost middleware: any throw becomes a JSON answer, and what was not expected is logged and told to nobody.
 */
import type { Middleware } from 'koa';
import type { Logger } from '../../core/logger.ts';
import { refusalOf } from '../errors.ts';
import { Refusal, refusalBody } from '../refusal.ts';

const DEFAULT_STATUS = 400;

export function makeFunnel(logger: Logger): Middleware {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined) {
        throw new Refusal('There is / (a page), /graphql and /health.', {
          code: 'not_found',
          statusCode: 404,
        });
      }
    } catch (error) {
      const refusal =
        error instanceof Refusal ? error : error instanceof Error ? refusalOf(error) : undefined;
      if (refusal === undefined) logger.error({ err: error }, 'a request failed');
      const told =
        refusal ?? new Refusal('Something went wrong.', { code: 'internal_error', statusCode: 500 });
      ctx.status = told.extensions.statusCode ?? DEFAULT_STATUS;
      ctx.body = refusalBody(told);
      if (ctx.status === 401) ctx.set('www-authenticate', 'Bearer');
    }
  };
}
