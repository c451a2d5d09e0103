/** Reads a body whole, cut off at its limit while it arrives. */
import getRawBody from 'raw-body';
import { ServiceError } from '../core/errors.ts';
import type { Context } from './context.ts';

/** Throws ServiceError: `invalid_parameter` over the limit, `invalid_json` when it is compressed or does not arrive. */
export async function readRawBody(ctx: Context, maxBytes: number): Promise<Buffer> {
  const encoding = ctx.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') throw new ServiceError('invalid_json');
  try {
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
