/** Public reads: JSON with an ETag and a short `Cache-Control`, answered 304 where the caller has it already. */
import { createHash } from 'node:crypto';
import type { Context } from './context.ts';
import { hasAlready } from './http-conditions.ts';

export function answerPublicRead(ctx: Context, body: unknown, maxAgeSeconds: number): void {
  const text = JSON.stringify(body);
  const tag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`;
  ctx.status = 200;
  ctx.set('Cache-Control', `public, max-age=${maxAgeSeconds}`);
  ctx.set('ETag', tag);
  if (hasAlready(ctx, tag)) {
    ctx.status = 304;
    return;
  }
  ctx.type = 'application/json';
  ctx.body = text;
}
