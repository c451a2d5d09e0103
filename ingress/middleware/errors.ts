/**
 * The one funnel: any throw becomes the error envelope. Expected failures are ServiceErrors; anything else is a bug or an
 * outage, logged with its cause and answered as `internal_error` without a word about the inside.
 */

import { isConnectionError } from '../../core/database.ts';
import { errorBody, ScopeError, ServiceError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { Context, Middleware } from '../context.ts';

export function errors(logger: Logger): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      answer(ctx, error, logger);
    }
  };
}

function answer(ctx: Context, error: unknown, logger: Logger): void {
  if (error instanceof ScopeError) {
    ctx.status = 403;
    ctx.body = {
      error: error.message,
      required_scope: error.requiredScope,
      current_scopes: error.currentScopes,
    };
    return;
  }
  const known = error instanceof ServiceError ? error : fromUnknown(error);
  if (known.code === 'internal_error') {
    logger.error(
      { err: error, requestId: ctx.state.requestId, path: ctx.path },
      'a request failed unexpectedly',
    );
  }
  ctx.status = known.status;
  if (known.retryAfterSeconds !== undefined) ctx.set('Retry-After', String(known.retryAfterSeconds));
  if (known.isFinal) ctx.set('x-should-retry', 'false'); // the official clients heed it
  ctx.body = errorBody(known.code, ctx.state.language, known.details);
}

function fromUnknown(error: unknown): ServiceError {
  if (isConnectionError(error))
    return new ServiceError('internal_error', {}, { cause: error, retryAfterSeconds: 2 });
  return new ServiceError('internal_error', {}, { cause: error });
}
