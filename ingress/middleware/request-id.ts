/** Every response carries `x-svc-request-id`; a paid request keeps that id on the books (UUID version 7: it sorts by time). */
import { randomFillSync } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Middleware } from '../context.ts';

const UUID_BYTES = 16;
/** Asking the kernel for every id's randomness took 3 % of an ingress's time: it is fetched for many at once. */
const pool = new Uint8Array(256 * UUID_BYTES);
let used = pool.length;

function randomBytes(): Uint8Array {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += UUID_BYTES;
  return pool.subarray(used - UUID_BYTES, used);
}

export const requestId: Middleware = (ctx, next) => {
  ctx.state.requestId = uuidv7({ random: randomBytes() });
  ctx.set('x-svc-request-id', ctx.state.requestId);
  return next() as Promise<void>;
};
