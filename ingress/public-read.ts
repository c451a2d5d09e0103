/** Public reads: JSON with an ETag and a short `Cache-Control`, answered 304 where the caller has it already. */
import { createHash } from 'node:crypto';
import type { Context } from './context.ts';
import { hasAlready } from './http-conditions.ts';
import { type Addressing, haveAddressesOneOrigin } from './public-url.ts';

/** `addressedBy`: the answer has addresses of this service in it. */
export function answerPublicRead(
  ctx: Context,
  body: unknown,
  maxAgeSeconds: number,
  { addressedBy }: { readonly addressedBy?: Addressing } = {},
): void {
  const text = JSON.stringify(body);
  const tag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`;
  ctx.status = 200;
  const isShared = addressedBy === undefined || haveAddressesOneOrigin(addressedBy);
  ctx.set('Cache-Control', isShared ? `public, max-age=${maxAgeSeconds}` : 'private, no-store');
  ctx.set('ETag', tag);
  if (hasAlready(ctx, tag)) {
    ctx.status = 304;
    return;
  }
  ctx.type = 'application/json';
  ctx.body = text;
}
