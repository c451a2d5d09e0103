/**
 * Serves a file to its caller: whole or one range of it, streamed at the reader's pace, never whole in memory. Whose it is was
 * decided by whoever looked it up; whether it is still there is said here.
 */
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { assetKey, extensionOf } from '../core/assets/keys.ts';
import { AssetMissing } from '../core/assets/store.ts';
import { ServiceError } from '../core/errors.ts';
import type { Context } from './context.ts';
import type { Asset } from './data/assets.ts';
import { type ByteRange, hasAlready, parseRange } from './http-conditions.ts';
import type { Services } from './services.ts';

/** What was deleted may be shown by its owner's own cache for this long. */
const MAX_AGE_SECONDS = 3600;
/** What was taken down may be shown by everybody's caches for this long. */
const PUBLIC_MAX_AGE_SECONDS = 300;

type Serving = Pick<Services, 'files' | 'logger' | 'config' | 'now'>;

/** How a file has ended; undefined: it may still be shown. */
export function endOf({ deletedAt, isExpired }: Asset): 'deleted' | 'expired' | undefined {
  if (deletedAt !== null) return 'deleted';
  return isExpired ? 'expired' : undefined;
}

/** What may still be shown of a file that was looked up: throws `not_found`, `gone` or `expired`. */
export function requireLive(asset: Asset | undefined): Asset {
  if (asset === undefined) throw new ServiceError('not_found');
  const end = endOf(asset);
  if (end !== undefined) throw new ServiceError(end === 'deleted' ? 'gone' : 'expired');
  return asset;
}

/** GET and HEAD. Resolves when the last byte has gone out, or the caller has left. `isPublic`: caches between us may keep it too. */
export async function serveAsset(
  ctx: Context,
  services: Serving,
  found: Asset | undefined,
  { isPublic = false } = {},
): Promise<void> {
  const asset = requireLive(found);
  const tag = `"${asset.sha256}"`;
  const caching = isPublic
    ? `public, max-age=${PUBLIC_MAX_AGE_SECONDS}`
    : `private, max-age=${maxAgeSeconds(asset, services.now())}`;
  if (hasAlready(ctx, tag)) {
    describe(ctx, asset, tag, caching);
    ctx.status = 304;
    return;
  }
  const range = parseRange(ctx, tag, asset.bytes);
  if (range === 'unsatisfiable') {
    ctx.set('Content-Range', `bytes */${asset.bytes}`);
    throw new ServiceError('invalid_parameter', { param: 'Range', size: asset.bytes }, { status: 416 });
  }
  const body = ctx.method === 'HEAD' ? undefined : await openFile(services, asset, range);
  describe(ctx, asset, tag, caching);
  ctx.status = range === undefined ? 200 : 206;
  if (range !== undefined) ctx.set('Content-Range', `bytes ${range.start}-${range.end}/${asset.bytes}`);
  ctx.set('Content-Type', asset.contentType);
  ctx.set('Content-Length', String(range === undefined ? asset.bytes : range.end - range.start + 1));
  ctx.set('Content-Disposition', `inline; filename="${asset.id}.${extensionOf(asset.contentType)}"`);
  ctx.respond = false; // from here on the response is written by hand
  if (body === undefined) ctx.res.end();
  else await send(ctx, services, asset, body);
}

/** The whole file as the answer to a request that is no read of it: no conditions, no ranges. */
export async function answerWithAsset(
  ctx: Context,
  services: Serving,
  found: Asset | undefined,
): Promise<void> {
  const asset = requireLive(found);
  const body = await openFile(services, asset, undefined);
  ctx.status = 200;
  ctx.set('Content-Type', asset.contentType);
  ctx.set('Content-Length', String(asset.bytes));
  ctx.set('Cache-Control', 'private, no-store');
  ctx.set('X-Content-Type-Options', 'nosniff');
  ctx.respond = false; // from here on the response is written by hand
  await send(ctx, services, asset, body);
}

/** What an answer says of the file, with or without its bytes; errors say none of it. */
function describe(ctx: Context, asset: Asset, tag: string, caching: string): void {
  ctx.set('ETag', tag);
  ctx.set('Last-Modified', asset.createdAt.toUTCString());
  ctx.set('Cache-Control', caching);
  ctx.set('Accept-Ranges', 'bytes');
  ctx.set('X-Content-Type-Options', 'nosniff');
}

function maxAgeSeconds({ expiresAt }: Asset, now: Date): number {
  if (expiresAt === null) return MAX_AGE_SECONDS;
  return Math.max(0, Math.min(MAX_AGE_SECONDS, Math.floor((expiresAt.getTime() - now.getTime()) / 1000)));
}

async function openFile(
  { files, logger }: Serving,
  asset: Asset,
  range: ByteRange | undefined,
): Promise<Readable> {
  return await files.store
    .open(assetKey(asset), range)
    .catch((error: unknown) => missing(logger, asset, error));
}

/** The whole file. Throws `gone` where the store has it no longer. */
export async function readAsset(
  { files, logger }: Pick<Serving, 'files' | 'logger'>,
  asset: Asset,
  maxBytes: number,
): Promise<Buffer> {
  return await files.store
    .read(assetKey(asset), { maxBytes })
    .catch((error: unknown) => missing(logger, asset, error));
}

/** Swept since the row was read, or lost. */
function missing(logger: Serving['logger'], asset: Asset, error: unknown): never {
  if (!(error instanceof AssetMissing)) throw error;
  logger.error({ assetId: asset.id, requestId: asset.requestId }, 'a file is not in the store');
  throw new ServiceError('gone', {}, { cause: error });
}

/** A reader that takes nothing for long is cut off, so that it cannot keep a file open for good. */
async function send(ctx: Context, { config, logger }: Serving, asset: Asset, body: Readable): Promise<void> {
  const { res } = ctx;
  res.setTimeout(config.slowReaderSeconds * 1000, () => res.destroy());
  let storeFailure: unknown;
  body.once('error', (error) => {
    if (!res.destroyed) storeFailure = error;
  });
  try {
    await pipeline(body, res);
  } catch {
    // the caller sees that the file is not whole: the connection is cut before its length is reached
    if (storeFailure !== undefined) {
      logger.error({ err: storeFailure, assetId: asset.id }, 'a file could not be read to its end');
    }
  }
}
