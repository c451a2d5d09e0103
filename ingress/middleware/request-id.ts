/** Every response carries `x-svc-request-id`; a paid request keeps that id on the books (UUID version 7: it sorts by time). */
import { v7 as uuidv7 } from 'uuid';
import type { Middleware } from '../context.ts';

export const requestId: Middleware = (ctx, next) => {
  ctx.state.requestId = uuidv7();
  ctx.set('x-svc-request-id', ctx.state.requestId);
  return next() as Promise<void>;
};
