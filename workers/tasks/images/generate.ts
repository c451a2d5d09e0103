/**
 * images/generate: pictures from a prompt, or from other pictures, streamed or whole. Pictures go to the store before the request is
 * settled, and are shown from then on; what a run that came to nothing has stored is never seen and swept by housekeeping.
 */
import {
  IMAGE_TASK,
  type ImageJobInput,
  type ImageStreamEvent,
  MAX_PICTURE_BYTES,
} from '../../../core/images.ts';
import type { Logger } from '../../../core/logger.ts';
import type { PictureSigner } from '../../../core/provenance/signer.ts';
import { type RunAssets, sayingWhatFailed } from '../../assets.ts';
import type { Places } from '../../places.ts';
import { type ImageCall, type ImageProvider, ProviderError } from '../../providers/provider.ts';
import type { Routes } from '../../routes.ts';
import type { Run } from '../../run.ts';
import type { Outcome, PaidTask } from '../../task.ts';
import { callOf, imageOf } from './call.ts';
import {
  draftOf,
  imageOfResult,
  inOrder,
  lookOf,
  type Made,
  outcomeOf,
  type Produced,
  stoppedOutcome,
  storable,
} from './outcome.ts';
import { finishPicture, type Origin } from './pictures.ts';
import { makeRooms, type Rooms } from './room.ts';
import { countsOf } from './usage.ts';

export interface ImageTaskOptions {
  readonly routes: Routes;
  readonly assets: RunAssets;
  readonly signer: PictureSigner;
  readonly logger: Logger;
  /** For requests under way. */
  readonly places: Places;
  /** Of answers in memory at once, as they come from providers. */
  readonly answerBytes: number;
}

export function makeImageTask(options: ImageTaskOptions): PaidTask<ImageJobInput> {
  const rooms = makeRooms(options.answerBytes);
  return {
    name: IMAGE_TASK,
    // whole pictures nobody has seen may be made again; of a stream a partial one may have been seen
    mayRepeat: (payload) => !payload.isStream,
    isCollected: true,
    hasInputFiles: true,
    perform: (run, input) =>
      // its pictures go from the store to the provider as they are read: they are in nobody's memory
      options.places.inTurn({ accountId: run.payload.accountId, inputBytes: 0, signal: run.signal }, () =>
        perform(run, input, options, rooms),
      ),
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
  const produced: Produced = { shown: new Set(), finished: new Map(), provider: '' };
  try {
    const made = await routes.call(
      { modelId: run.payload.modelId, isTest: input.isTest, signal: run.signal, times: run.payload },
      async (served, route) => {
        const call = callOf(run, input, route.upstreamModel, assets, room);
        const work = run.payload.isStream ? makeStreamed : makeWhole;
        produced.provider = served.name;
        produced.finished.clear(); // of a route that failed
        try {
          return await work(run, input, imageOf(served), call, { assets, signer }, produced);
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
    return outcomeOf(run, input, made, stored, produced.provider);
  } catch (error) {
    // of a stream that its caller stops, what was shown cannot be taken back: it is paid for
    if (run.abortCause !== 'client_gone' || produced.shown.size === 0) throw error;
    return await stoppedOutcome(run, input, produced, assets, logger);
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
  { shown, finished: made }: Produced,
): Promise<readonly Made[]> {
  for await (const event of provider.stream(call)) {
    run.signal.throwIfAborted();
    if (event.index >= input.count) continue;
    if (event.kind === 'image') {
      const finished = await finishPicture(event.image.bytes, wantedOf(input), originOf(run), signer);
      made.set(event.index, {
        ...finished,
        revisedPrompt: storable(event.image.revisedPrompt),
        usage: countsOf(event.usage),
      });
    } else if (event.partialIndex < input.partialImages) {
      await emitPartial(run, input, event, { assets, signer }, shown);
    }
  }
  return requireSome(inOrder(made));
}

/** To the store first: an event carries the name of its picture, never the picture. */
async function emitPartial(
  run: Run,
  input: ImageJobInput,
  { index, partialIndex, bytes }: { index: number; partialIndex: number; bytes: Buffer },
  { assets, signer }: Pick<ImageTaskOptions, 'assets' | 'signer'>,
  shown: Set<number>,
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
  shown.add(index); // it goes out with the call, whatever comes of waiting for the reader
  await run.emit(JSON.stringify(event));
}

function wantedOf({ size, outputFormat, outputCompression }: ImageJobInput) {
  return { size, format: outputFormat, compression: outputCompression };
}

function originOf({ id, payload }: Run): Origin {
  return { requestId: id, model: payload.modelId, createdAt: new Date(payload.createdAtMs) };
}
