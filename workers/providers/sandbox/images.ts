/**
 * The sandbox's pictures: of the asked size, drawn from the prompt, alike for the same call and different for another prompt,
 * seed or position. An edit shows the caller's picture through a drawing of the prompt, within the mask. See docs/sandbox.md.
 */
import { Semaphore } from 'async-mutex';
import type { OverlayOptions } from 'sharp';
import { MAX_PICTURE_PIXELS, MAX_PICTURE_SIDE, type PictureSize } from '../../../core/pictures.ts';
import {
  type ImageCall,
  type ImageEvent,
  type ImageInput,
  type ProducedImages,
  ProviderError,
} from '../provider.ts';
import { loadTokenizer } from '../tokens.ts';
import { cutError, type Directives, directedError, parseDirectives } from './directives.ts';
import { drawScene, type Scene } from './drawing.ts';
import { pause } from './pause.ts';
import {
  type Area,
  composed,
  coverRaster,
  fileOf,
  opacityOf,
  type Raster,
  rasterOf,
  restoreOpaque,
  rough,
  transparentArea,
} from './raster.ts';

/** Between streamed pictures: enough to see that they come one by one, little enough for tests. */
const EVENT_SPACING_MS = 3;
/** Shapes in a picture, by quality; those not named here are drawn as `medium`. */
const DETAIL = new Map([
  ['low', 7],
  ['medium', 18],
  ['standard', 18],
  ['auto', 18],
  ['high', 44],
  ['hd', 44],
  ['xhigh', 70],
  ['max', 110],
]);
const DEFAULT_DETAIL = 18;
/** Squares along the longer side of the partial pictures, the last before the finished one last. */
const PARTIAL_SQUARES = [14, 36, 96];
/** Further reference pictures that are shown, as small ones in a row. */
const MAX_INSETS = 4;
/** What a picture of 1024 × 1024 counts, by quality; the convention's own numbers. */
const OUTPUT_TOKENS = new Map([
  ['low', 272],
  ['high', 4160],
]);
const DEFAULT_OUTPUT_TOKENS = 1056;

/** Pictures drawn at a time in one process; a large one is drawn alone. Each holds a few times its pixels, 4 bytes each. */
const MAX_DRAWN_AT_ONCE = 2;
const LARGE_PIXELS = 8_000_000;
const easels = new Semaphore(MAX_DRAWN_AT_ONCE);

interface Prepared {
  readonly call: ImageCall;
  readonly size: PictureSize;
  readonly directives: Directives;
}

export async function produceImages(call: ImageCall): Promise<ProducedImages> {
  const prepared = await prepare(call);
  if (prepared.directives.cut) throw cutError();
  const images: { bytes: Buffer }[] = [];
  while (images.length < call.count)
    images.push({ bytes: (await drawn(prepared, images.length, 0)).finished });
  return { images, usage: await usageOf(prepared, call.count) };
}

export async function* streamImages(call: ImageCall): AsyncGenerator<ImageEvent, void, undefined> {
  const prepared = await prepare(call);
  const usage = await usageOf(prepared, 1);
  for (let index = 0; index < call.count; index += 1) {
    if (index > 0) await pause(EVENT_SPACING_MS, call.signal);
    const { partials, finished } = await drawn(prepared, index, call.partialImages);
    for (const [partialIndex, bytes] of partials.entries()) {
      yield { kind: 'partial', index, partialIndex, bytes };
      await pause(EVENT_SPACING_MS, call.signal);
    }
    // In the middle: behind partial pictures where there are some, else behind the first of several.
    if (prepared.directives.cut && (partials.length > 0 || index > 0 || call.count === 1)) throw cutError();
    yield { kind: 'image', index, image: { bytes: finished }, usage };
  }
}

/** The files of one picture. Many calls may wait here, and hold no pixels meanwhile. */
function drawn(
  prepared: Prepared,
  index: number,
  partialCount: number,
): Promise<{ partials: Buffer[]; finished: Buffer }> {
  const { call, size } = prepared;
  const isLarge = size.width * size.height > LARGE_PIXELS;
  return easels.runExclusive(
    async () => {
      call.signal.throwIfAborted();
      const raster = await paint(prepared, index);
      const partials: Buffer[] = [];
      for (const squares of PARTIAL_SQUARES.slice(PARTIAL_SQUARES.length - partialCount)) {
        call.signal.throwIfAborted();
        partials.push((await fileOf(await rough(raster, squares), call)).bytes);
      }
      const finished = (await fileOf(raster, call)).bytes;
      call.signal.throwIfAborted();
      return { partials, finished };
    },
    isLarge ? MAX_DRAWN_AT_ONCE : 1,
  );
}

async function prepare(call: ImageCall): Promise<Prepared> {
  call.signal.throwIfAborted();
  const directives = parseDirectives(call.prompt, 'prompt');
  if (directives.delayMs > 0) await pause(directives.delayMs, call.signal);
  if (directives.error !== undefined) throw directedError(directives.error);
  if (call.background === 'transparent' && call.outputFormat === 'jpeg')
    throw refused('background', 'A JPEG has no transparency; ask for png or webp.');
  return { call, size: sizeOf(call.size), directives };
}

async function paint({ call, size, directives }: Prepared, index: number): Promise<Raster> {
  const scene = (ground: Scene['ground'], within: PictureSize): string =>
    drawScene({
      words: directives.text,
      salt: [directives.text, call.seed ?? '', index].join('\n'),
      width: within.width,
      height: within.height,
      detail: Math.ceil(detailOf(call) * (ground === 'overlay' ? 0.4 : 1)),
      ground,
    });
  const [first, ...others] = call.images;
  if (first === undefined)
    return rasterOf(scene(call.background === 'transparent' ? 'transparent' : 'full', size), size);
  const base = await readable('image', coverRaster(first, size));
  const opacity = await maskOf(call, size);
  const area = opacity === undefined ? { left: 0, top: 0, ...size } : await transparentArea(opacity, size);
  // An opaque mask leaves nothing to be edited.
  if (area === undefined) return base;
  const edited = await composed(base, [
    { input: Buffer.from(scene('overlay', area)), left: area.left, top: area.top },
    ...(await insets(others, area)),
  ]);
  if (opacity !== undefined) await restoreOpaque(edited, base, opacity);
  return edited;
}

async function maskOf({ mask }: ImageCall, size: PictureSize): Promise<Buffer | undefined> {
  if (mask === undefined) return undefined;
  const opacity = await readable('mask', opacityOf(mask, size));
  if (opacity === undefined)
    throw refused('mask', 'The mask has no transparency that would say what to edit.');
  return opacity;
}

/** In the upper right corner of the area, small. */
async function insets(images: readonly ImageInput[], area: Area): Promise<OverlayOptions[]> {
  const side = Math.floor(Math.min(area.width, area.height) / 6);
  if (side < 8) return [];
  const rasters = images
    .slice(0, MAX_INSETS)
    .map((image) => coverRaster(image, { width: side, height: side }));
  return (await readable('image', Promise.all(rasters))).map(({ pixels, width, height }, position) => ({
    input: pixels,
    raw: { width, height, channels: 4 },
    left: area.left + area.width - Math.round(side * 1.15) * (position + 1),
    top: area.top + Math.round(side * 0.15),
  }));
}

/** What the caller sent cannot be read: said of the field, not of its bytes. */
async function readable<Result>(param: string, reading: Promise<Result>): Promise<Result> {
  try {
    return await reading;
  } catch (error) {
    throw new ProviderError('rejected', 'A picture of the call cannot be read.', {
      publicMessage: '[sandbox] The picture cannot be read.',
      param,
      cause: error,
    });
  }
}

function sizeOf(size: string): PictureSize {
  const [, width, height] = (/^(\d{1,5})x(\d{1,5})$/.exec(size) ?? []).map(Number);
  if (!width || !height || Math.max(width, height) > MAX_PICTURE_SIDE || width * height > MAX_PICTURE_PIXELS)
    throw refused('size', 'Not a size that can be drawn.');
  return { width, height };
}

function refused(param: string, words: string): ProviderError {
  return new ProviderError('rejected', 'The sandbox cannot draw what was asked for.', {
    publicMessage: `[sandbox] ${words}`,
    param,
  });
}

function detailOf({ quality }: ImageCall): number {
  return DETAIL.get(quality ?? '') ?? DEFAULT_DETAIL;
}

/** As the convention counts: what was read, and what was drawn by size and quality. */
async function usageOf(
  { call, size, directives }: Prepared,
  pictures: number,
): Promise<ProducedImages['usage']> {
  if (directives.noUsage) return undefined;
  const textTokens = (await loadTokenizer()).countTokens(call.prompt);
  const perPicture = OUTPUT_TOKENS.get(call.quality ?? '') ?? DEFAULT_OUTPUT_TOKENS;
  const imageTokens = call.images.length * DEFAULT_OUTPUT_TOKENS;
  const outputTokens = pictures * Math.ceil((perPicture * size.width * size.height) / 1024 ** 2);
  return {
    input_tokens: textTokens + imageTokens,
    input_tokens_details: { text_tokens: textTokens, image_tokens: imageTokens },
    output_tokens: outputTokens,
    total_tokens: textTokens + imageTokens + outputTokens,
  };
}
