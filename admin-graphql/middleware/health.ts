/** `GET /health`: 200 while the database answers, else 503. */
import type { Middleware } from 'koa';
import type { Pool } from '../../core/database.ts';

const PING = 'select 1';

export function makeHealth(pool: Pool): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== '/health' || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return await next();
    const isUp = await pool.query(PING).then(
      () => true,
      () => false,
    );
    ctx.status = isUp ? 200 : 503;
    ctx.body = { status: isUp ? 'ok' : 'down', database: isUp ? 'ok' : 'down' };
  };
}
