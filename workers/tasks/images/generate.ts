/**
 * images/generate: pictures from a prompt, or from other pictures, streamed or whole. Pictures go to the store before the request is
 * settled, and are shown from then on; what a run that came to nothing has stored is never seen and swept by housekeeping.
 */
import { Semaphore } from 'async-mutex';
import type { AssetDraft, AssetFile } from '../../../core/assets/files.ts';
import {
  IMAGE_TASK,
  type ImageDetails,
  type ImageJobInput,
  type ImageOfResult,
  type ImageResult,
  type ImageStreamEvent,
  MAX_PICTURE_BYTES,
  sumOfCounts,
} from '../../../core/images.ts';
import type { Logger } from '../../../core/logger.ts';
import type { PictureSigner } from '../../../core/provenance/signer.ts';
import type { RunAssets } from '../../assets.ts';
import { type ImageCall, type ImageProvider, ProviderError } from '../../providers/provider.ts';
import type { Routes } from '../../routes.ts';
import type { Run } from '../../run.ts';
import type { Outcome, PaidTask } from '../../task.ts';
import { callOf, imageOf } from './call.ts';
import { type Finished, finishPicture, type Origin } from './pictures.ts';
import { makeRooms, type Rooms } from './room.ts';
import { sayingWhatFailed } from './store-failure.ts';
import { countsOf } from './usage.ts';

export interface ImageTaskOptions {
  readonly routes: Routes;
  readonly assets: RunAssets;
  readonly signer: PictureSigner;
  readonly logger: Logger;
  /** Requests under way at once. */
  readonly concurrency: number;
  /** Of answers in memory at once, as they come from providers. */
  readonly answerBytes: number;
}

type Counts = Readonly<Record<string, unknown>> | null;

/** A finished picture that is not stored yet. */
interface Made extends Finished {
  readonly revisedPrompt: string | null;
  readonly usage: Counts;
}

export function makeImageTask(options: ImageTaskOptions): PaidTask<ImageJobInput> {
  const places = new Semaphore(options.concurrency);
  const rooms = makeRooms(options.answerBytes);
  return {
    name: IMAGE_TASK,
    // whole pictures nobody has seen may be made again; of a stream a partial one may have been seen
    mayRepeat: (payload) => !payload.isStream,
    isCollected: true,
    hasInputFiles: true,
    perform: (run, input) =>
      places.runExclusive(() => {
        run.signal.throwIfAborted(); // it may have waited long for its place
        return perform(run, input, options, rooms);
      }),
  };
}

async function perform(
  run: Run,
  input: ImageJobInput,
  options: ImageTaskOptions,
  rooms: Rooms,
): Promise<Outcome> {
  const { routes, signer, logger } = options;
  const { assets, failure } = sayingWhatFailed(options.assets, run, logger);
  const room = rooms.for(input);
  try {
    const { made, provider } = await routes.call(
      { modelId: run.payload.modelId, isTest: input.isTest, signal: run.signal },
      async (served, route) => {
        const call = callOf(run, input, route.upstreamModel, assets, room.enter);
        const work = run.payload.isStream ? makeStreamed : makeWhole;
        try {
          return {
            made: await work(run, input, imageOf(served), call, { assets, signer }),
            provider: served.name,
          };
        } catch (error) {
          throw failure() ?? error; // a picture that could not be read is not the provider's fault
        }
      },
      () => run.events.length > 0,
    );
    run.signal.throwIfAborted();
    const stored = await assets.put(
      run,
      made.map((one, position) => draftOf(one, position, input)),
    );
    return outcomeOf(run, input, made, stored, provider);
  } finally {
    room.leave();
  }
}

/** Throws `ProviderError` when a provider gives none; fewer than asked for are charged as fewer. */
function requireSome<One>(made: readonly One[]): readonly One[] {
  if (made.length === 0) throw new ProviderError('invalid_response', 'no pictures');
  return made;
}

async function makeWhole(
  run: Run,
  input: ImageJobInput,
  provider: ImageProvider,
  call: ImageCall,
  { signer }: Pick<ImageTaskOptions, 'signer'>,
): Promise<readonly Made[]> {
  const { images, usage } = await provider.produce(call);
  const made: Made[] = [];
  // what is over is not asked for, and not paid for
  const wanted = images.slice(0, input.count);
  for (const [index, { bytes, revisedPrompt }] of wanted.entries()) {
    run.signal.throwIfAborted();
    const finished = await finishPicture(bytes, wantedOf(input), originOf(run), signer);
    const isLast = index === wanted.length - 1;
    made.push({
      ...finished,
      revisedPrompt: storable(revisedPrompt),
      usage: isLast ? countsOf(usage) : null,
    });
  }
  return requireSome(made);
}

async function makeStreamed(
  run: Run,
  input: ImageJobInput,
  provider: ImageProvider,
  call: ImageCall,
  { assets, signer }: Pick<ImageTaskOptions, 'assets' | 'signer'>,
): Promise<readonly Made[]> {
  const made: (Made | undefined)[] = Array.from({ length: input.count });
  for await (const event of provider.stream(call)) {
    run.signal.throwIfAborted();
    if (event.index >= input.count) continue;
    if (event.kind === 'image') {
      const finished = await finishPicture(event.image.bytes, wantedOf(input), originOf(run), signer);
      made[event.index] = {
        ...finished,
        revisedPrompt: storable(event.image.revisedPrompt),
        usage: countsOf(event.usage),
      };
    } else if (event.partialIndex < input.partialImages) {
      await emitPartial(run, input, event, { assets, signer });
    }
  }
  return requireSome(made.filter((one) => one !== undefined));
}

/** To the store first: an event carries the name of its picture, never the picture. */
async function emitPartial(
  run: Run,
  input: ImageJobInput,
  { index, partialIndex, bytes }: { index: number; partialIndex: number; bytes: Buffer },
  { assets, signer }: Pick<ImageTaskOptions, 'assets' | 'signer'>,
): Promise<void> {
  const finished = await finishPicture(bytes, { ...wantedOf(input), size: undefined }, originOf(run), signer);
  const [file] = await assets.put(run, [
    {
      kind: 'partial',
      position: index * input.partialImages + partialIndex,
      contentType: finished.contentType,
      body: finished.bytes,
      maxBytes: MAX_PICTURE_BYTES,
    },
  ]);
  if (file === undefined) throw new Error('a partial picture was not stored');
  const event: ImageStreamEvent = {
    kind: 'partial',
    index,
    partialIndex,
    image: imageOfResult(file, null),
    ...lookOf(run, input),
  };
  await run.emit(JSON.stringify(event));
}

function outcomeOf(
  run: Run,
  input: ImageJobInput,
  made: readonly Made[],
  stored: readonly AssetFile[],
  provider: string,
): Outcome {
  const usage = sumOfCounts(made.map((one) => one.usage));
  const images = stored.map((file, index) => imageOfResult(file, made[index]?.revisedPrompt ?? null));
  const costAp = images.length * input.priceAp;
  const { created, operation: _operation, ...look } = lookOf(run, input);
  const result: ImageResult = {
    id: run.id,
    created,
    model: run.payload.modelId,
    ...look,
    images,
    usage,
    costAp,
  };
  const events = images.map(
    (image, index): ImageStreamEvent => ({
      kind: 'completed',
      index,
      image,
      ...lookOf(run, input),
      costAp: input.priceAp,
      usage: made[index]?.usage ?? null,
    }),
  );
  return {
    kind: 'succeeded',
    costAp,
    usage: {
      images: images.length,
      size: input.size,
      ...(input.quality === null ? {} : { quality: input.quality }),
      ...(usage === null ? {} : { provider: usage }),
      ...(input.characterId === null ? {} : { character_id: input.characterId }),
    },
    provider,
    ...(run.payload.isStream
      ? { lastEvents: events.map((event) => JSON.stringify(event)) }
      : { body: JSON.stringify(result) }),
    assets: stored,
    // who asks for three is not answered with the two that came the first time
    ...(input.cacheKey !== null && images.length === input.count ? { cacheKey: input.cacheKey } : {}),
  };
}

function draftOf(made: Made, position: number, input: ImageJobInput): AssetDraft {
  const { bytes, contentType, width, height, revisedPrompt } = made;
  return {
    kind: 'image',
    position,
    contentType,
    body: bytes,
    maxBytes: MAX_PICTURE_BYTES,
    // what is said of it as long as it is kept: ImageDetails
    details: {
      width,
      height,
      quality: input.quality,
      background: input.background,
      revisedPrompt,
      ...(input.characterId === null ? {} : { characterId: input.characterId }),
    } satisfies ImageDetails,
  };
}

function imageOfResult({ id, contentType, bytes }: AssetFile, revisedPrompt: string | null): ImageOfResult {
  return { asset: id, contentType, bytes, revisedPrompt };
}

function lookOf(run: Run, input: ImageJobInput) {
  const { operation, size, quality, background, outputFormat } = input;
  const created = Math.floor(run.payload.createdAtMs / 1000);
  return { operation, created, size, quality, background, outputFormat };
}

function wantedOf({ size, outputFormat, outputCompression }: ImageJobInput) {
  return { size, format: outputFormat, compression: outputCompression };
}

function originOf({ id, payload }: Run): Origin {
  return { requestId: id, model: payload.modelId, createdAt: new Date(payload.createdAtMs) };
}

/** `jsonb` takes neither NUL nor half of a surrogate pair. */
function storable(text: string | undefined): string | null {
  return text === undefined ? null : text.toWellFormed().replaceAll('\u0000', '\ufffd');
}
