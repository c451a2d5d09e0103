/** Reads a body whole, cut off at its limit while it arrives. */
import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';
import { ServiceError } from '../core/errors.ts';
import type { Context } from './context.ts';

/** From here up a body of known length is not gathered in parts and then put together: that takes twice its memory. */
const LARGE_BYTES = 256 * 1024;

/** Throws ServiceError: `invalid_parameter` over the limit, `invalid_json` when it is compressed or does not arrive. */
export async function readRawBody(ctx: Context, maxBytes: number): Promise<Buffer> {
  const encoding = ctx.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') throw new ServiceError('invalid_json');
  const length = Number(ctx.headers['content-length'] ?? 0);
  try {
    if (length > LARGE_BYTES && length <= maxBytes) return await readInPlace(ctx.req, length);
    // biome-ignore lint/nursery/useAwaitThenable: without a callback it answers with a promise
    return await getRawBody(ctx.req, { limit: maxBytes, length: ctx.headers['content-length'] ?? null });
  } catch (error) {
    const { type: kind } = error as { type?: string };
    // what is still on its way will not be read: the connection ends with the answer
    ctx.set('Connection', 'close');
    if (kind === 'entity.too.large') {
      throw new ServiceError('invalid_parameter', { param: 'body', max_bytes: maxBytes });
    }
    throw new ServiceError('invalid_json', {}, { cause: error });
  }
}

/** Node sees to it that there is never more than was said. */
async function readInPlace(request: IncomingMessage, length: number): Promise<Buffer> {
  const body = Buffer.allocUnsafeSlow(length);
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) bytes += part.copy(body, bytes);
  if (bytes !== length) throw new Error('the body ended early');
  return body;
}
