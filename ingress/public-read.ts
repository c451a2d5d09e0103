/** Public reads: JSON with an ETag and a short `Cache-Control`, answered 304 where the caller has it already. */
import { createHash } from 'node:crypto';
import type { Context } from './context.ts';

/**
 * If-None-Match (RFC 9110, section 13.1.2). Not Koa's `fresh`, which takes `Cache-Control: no-cache` for a wish to have the whole
 * body again: `fetch` adds that to every request which brings an If-None-Match of its own.
 */
function hasAlready(ctx: Context, tag: string): boolean {
  const header = ctx.headers['if-none-match'];
  if (header === undefined) return false;
  return header.split(',').some((known) => known.trim() === '*' || known.trim().replace(/^W\//, '') === tag);
}

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
