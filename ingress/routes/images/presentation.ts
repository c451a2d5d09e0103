/**
 * How image results leave the service: the answer with its pictures as base64, written as the caller takes it, and the events of a
 * stream. The same for an answer that was just made, given again, or found in the cache.
 */
import { AssetMissing } from '../../../core/assets/store.ts';
import { ServiceError } from '../../../core/errors.ts';
import {
  contentTypeOf,
  type ImageResult,
  type ImageStreamEvent,
  OUTPUT_FORMATS,
} from '../../../core/images.ts';
import { endOf, requireLive } from '../../assets.ts';
import { type Base64Json, base64Json } from '../../base64-json.ts';
import { type Context, callerOf } from '../../context.ts';
import type { Asset } from '../../data/assets.ts';
import { findGeneration, type Generation } from '../../data/images.ts';
import type { Presentation } from '../../paid.ts';
import type { Services } from '../../services.ts';
import { drained, replayEvents, type StreamShape } from '../../stream.ts';
import { detailsOf, eventType, eventView, resultView, type ShownResult, statusPath } from './view.ts';

/** A picture takes long, and what fails at once has failed by then: the caller gets the id to collect it by. */
const OPEN_AFTER_MS = 2000;

export interface Wanted {
  readonly count: number;
  readonly isUrlOnly: boolean;
}

export function makePresentation(services: Services, wanted: Wanted): Presentation {
  return {
    announce,
    statusPath,
    requireKept: (ctx, id) => requireKept(ctx, services, id),
    answer: (ctx, _id, stored) => answerWithResult(ctx, services, JSON.parse(stored) as ImageResult, wanted),
    stream: (ctx, id) => streamShape(ctx, services, id, wanted, false),
  };
}

export function announce(ctx: Context, id: string): void {
  ctx.set('X-SVC-Image-Id', id);
}

/** A result that was made before, to somebody who asks the same again: free, and nothing is on the books. */
export async function answerFromCache(
  ctx: Context,
  services: Services,
  found: Generation,
  wanted: Wanted & { readonly isStream: boolean; readonly operation: 'generation' | 'edit' },
): Promise<void> {
  announce(ctx, found.id);
  ctx.set('x-svc-model', found.modelId);
  ctx.set('x-svc-cached', 'true');
  const result = resultOf(found);
  if (!wanted.isStream) {
    ctx.set('x-svc-ap-cost', '0');
    await answerWithResult(ctx, services, result, { isUrlOnly: wanted.isUrlOnly, isCached: true });
    return;
  }
  const events = eventsOf(result, wanted.operation).map((event) => JSON.stringify(event));
  const counted = { ...wanted, count: result.images.length };
  await replayEvents(ctx, services.config, events, streamShape(ctx, services, found.id, counted, true));
}

/** From the rows alone, as the stored answer had it; besides it says which pictures have ended. */
export function resultOf({ id, modelId, createdAt, images, usage, costAp }: Generation): ShownResult {
  const first = images[0];
  if (first === undefined) throw new Error('a generation without pictures');
  const { width, height, quality, background } = detailsOf(first);
  const provided = usage?.provider as Readonly<Record<string, unknown>> | undefined;
  return {
    id,
    created: Math.floor(createdAt.getTime() / 1000),
    model: modelId,
    size: `${width}x${height}`,
    quality,
    background,
    outputFormat: OUTPUT_FORMATS.find((format) => contentTypeOf(format) === first.contentType) ?? 'png',
    images: images.map((image) => ({
      asset: image.id,
      contentType: image.contentType,
      bytes: image.bytes,
      revisedPrompt: detailsOf(image).revisedPrompt,
      end: endOf(image),
    })),
    usage: provided ?? null,
    costAp: costAp ?? 0,
  };
}

/** The events in which a result is told to a stream that had no part in its making. */
function eventsOf(result: ImageResult, operation: 'generation' | 'edit'): ImageStreamEvent[] {
  const { images, created, size, quality, background, outputFormat, usage } = result;
  return images.map((image, index) => ({
    kind: 'completed',
    operation,
    index,
    image,
    created,
    size,
    quality,
    background,
    outputFormat,
    costAp: 0,
    usage: index === images.length - 1 ? usage : null,
  }));
}

/** Throws 410 when pictures of this generation were deleted or are past their retention. */
async function requireKept(ctx: Context, { pool }: Services, id: string): Promise<void> {
  const generation = await findGeneration(pool, id, callerOf(ctx).accountId);
  requireAllLive(generation?.images ?? []);
}

/** Throws 410 when none of a generation's pictures may be shown any more. */
export function requireAnyLive(images: readonly Asset[]): void {
  if (!images.some((image) => endOf(image) === undefined)) requireAllLive(images);
}

/** Throws 410 when one of a generation's pictures was deleted, is past its retention, or is not there any more. */
function requireAllLive(images: readonly Asset[]): void {
  if (images.length === 0) throw new ServiceError('expired');
  for (const image of images) requireLive(image);
}

/** The whole answer. Nothing is sent before its first picture was found. */
export async function answerWithResult(
  ctx: Context,
  services: Services,
  result: ShownResult,
  { isUrlOnly, ...how }: { isUrlOnly: boolean; isCached?: boolean; status?: string },
): Promise<void> {
  const { config, logger } = services;
  if (isUrlOnly) {
    ctx.body = resultView(ctx, config, result, how);
    return;
  }
  const json = base64Json((embed) => resultView(ctx, config, result, { ...how, embed }));
  const { res } = ctx;
  let isBegun = false;
  try {
    for await (const text of json.chunks(services.files.store, whileOpen(ctx))) {
      if (!isBegun) {
        isBegun = true;
        ctx.respond = false; // from here on the response is written by hand
        res.writeHead(200, {
          'Content-Type': 'application/json; charset=utf-8',
          'Content-Length': String(json.bytes),
        });
      }
      if (res.destroyed) return;
      if (!res.write(text)) await drained(res, config.slowReaderSeconds * 1000);
    }
    res.end();
  } catch (error) {
    if (res.destroyed) return; // the caller left
    if (!isBegun && !(error instanceof AssetMissing)) throw error;
    logger.error({ err: error, requestId: result.id }, 'a picture could not be read from the store');
    if (!isBegun) throw new ServiceError('gone', {}, { cause: error });
    res.destroy();
  }
}

/** Aborts when the response has been sent or its caller has left. */
function whileOpen({ res }: Context): AbortSignal {
  const controller = new AbortController();
  res.once('close', () => controller.abort());
  if (res.destroyed) controller.abort();
  return controller.signal;
}

function streamShape(
  ctx: Context,
  services: Services,
  id: string,
  wanted: Wanted,
  isCached: boolean,
): StreamShape {
  const signal = whileOpen(ctx);
  async function* text(events: readonly string[]): AsyncGenerator<string> {
    for (const stored of events) {
      const event = JSON.parse(stored) as ImageStreamEvent;
      // a partial picture has no address: without its bytes there is nothing to tell
      if (wanted.isUrlOnly && event.kind === 'partial') continue;
      const json = base64Json((embed) =>
        eventView(ctx, services.config, id, event, wanted.count, {
          isCached,
          embed: wanted.isUrlOnly ? undefined : embed,
        }),
      );
      yield* eventText(event, json, services, signal);
    }
  }
  return { text, end: '', openAfterMs: OPEN_AFTER_MS, stopWhenCallerLeaves: false };
}

/** Nothing of an event is sent before its picture was found; a partial one is not kept for long, and left out when it is gone. */
async function* eventText(
  event: ImageStreamEvent,
  json: Base64Json,
  { files, logger }: Services,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let isBegun = false;
  try {
    for await (const part of json.chunks(files.store, signal)) {
      if (!isBegun) yield `event: ${eventType(event)}\ndata: `;
      isBegun = true;
      yield part;
    }
    yield '\n\n';
  } catch (error) {
    if (error instanceof AssetMissing && event.kind === 'partial' && !isBegun) return;
    if (!signal.aborted)
      logger.error(
        { err: error, asset: event.image.asset },
        'a stream broke off: a picture could not be read',
      );
    throw error;
  }
}
