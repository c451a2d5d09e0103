/**
 * What an image run comes to: its result, its events, the rows of its pictures, and what is charged - of a stream that its caller
 * stopped too. Making pictures is not here.
 */
import type { AssetDraft, AssetFile } from '../../../core/assets/files.ts';
import {
  type ImageDetails,
  type ImageJobInput,
  type ImageOfResult,
  type ImageResult,
  type ImageStreamEvent,
  MAX_PICTURE_BYTES,
  sumOfCounts,
} from '../../../core/images.ts';
import type { Logger } from '../../../core/logger.ts';
import type { RunAssets } from '../../assets.ts';
import type { Run } from '../../run.ts';
import type { Outcome } from '../../task.ts';
import type { Finished } from './pictures.ts';

/** A stopped stream's pictures are put within this, well within what whoever cancels waits for. */
const KEEP_TIMEOUT_MS = 5000;

type Counts = Readonly<Record<string, unknown>> | null;

/** A finished picture that is not stored yet. */
export interface Made extends Finished {
  readonly revisedPrompt: string | null;
  readonly usage: Counts;
}

/** How far a stream has come. */
export interface Produced {
  /** The pictures of which a partial one went out, by their index. */
  readonly shown: Set<number>;
  readonly finished: Map<number, Made>;
  provider: string;
}

export function inOrder(finished: ReadonlyMap<number, Made>): readonly Made[] {
  return [...finished].sort(([one], [other]) => one - other).map(([, made]) => made);
}

export function outcomeOf(
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
    usage: usageView(input, images.length, usage),
    provider,
    ...(run.payload.isStream
      ? { lastEvents: events.map((event) => JSON.stringify(event)) }
      : { body: JSON.stringify(result) }),
    assets: stored,
    // who asks for three is not answered with the two that came the first time
    ...(input.cacheKey !== null && images.length === input.count ? { cacheKey: input.cacheKey } : {}),
  };
}

/**
 * Charged is each picture that was finished or of which something was shown; the finished ones are kept for the caller. Those that
 * cannot be kept count as far as they were shown.
 */
export async function stoppedOutcome(
  run: Run,
  input: ImageJobInput,
  { shown, finished, provider }: Produced,
  assets: Pick<RunAssets, 'keep'>,
  logger: Logger,
): Promise<Outcome> {
  const drafts = inOrder(finished).map((made, position) => draftOf(made, position, input));
  const stored = await assets
    .keep(run, drafts, AbortSignal.timeout(KEEP_TIMEOUT_MS))
    .catch((error: unknown) => {
      logger.error({ err: error, requestId: run.id }, 'the pictures of a stopped stream were not kept');
      return undefined;
    });
  const charged = new Set([...shown, ...(stored === undefined ? [] : finished.keys())]);
  const usage = sumOfCounts([...finished.values()].map((made) => made.usage));
  return {
    kind: 'cancelled',
    costAp: charged.size * input.priceAp,
    usage: usageView(input, charged.size, usage),
    provider,
    ...(stored === undefined ? {} : { assets: stored }),
  };
}

function usageView(input: ImageJobInput, images: number, provided: Counts): Record<string, unknown> {
  return {
    images,
    size: input.size,
    ...(input.quality === null ? {} : { quality: input.quality }),
    ...(provided === null ? {} : { provider: provided }),
    ...(input.characterId === null ? {} : { character_id: input.characterId }),
  };
}

export function draftOf(made: Made, position: number, input: ImageJobInput): AssetDraft {
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

export function imageOfResult(
  { id, contentType, bytes }: AssetFile,
  revisedPrompt: string | null,
): ImageOfResult {
  return { asset: id, contentType, bytes, revisedPrompt };
}

export function lookOf(run: Run, input: ImageJobInput) {
  const { operation, size, quality, background, outputFormat } = input;
  const created = Math.floor(run.payload.createdAtMs / 1000);
  return { operation, created, size, quality, background, outputFormat };
}

/** `jsonb` takes neither NUL nor half of a surrogate pair. */
export function storable(text: string | undefined): string | null {
  return text === undefined ? null : text.toWellFormed().replaceAll('\u0000', '\ufffd');
}
