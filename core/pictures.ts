/**
 * Everything done with the pixels of pictures, within limits: one or two operations at a time in a process, one thread each,
 * no cache, a limit on pixels and on time. sharp is loaded by the first of them (50 ms, 30 MB): a process without pictures
 * pays nothing. What a file is, and whether it may be decoded at all, is core/picture-file.ts.
 */
import { availableParallelism } from 'node:os';
import { Semaphore } from 'async-mutex';
import type { Metadata, Sharp, SharpOptions, default as sharpModule } from 'sharp';
import { letter } from './lettering.ts';
import { type PictureFormat, type PictureProblem, readPictureFile } from './picture-file.ts';

export const MAX_PICTURE_PIXELS = 64_000_000;
export const MAX_PICTURE_SIDE = 16_384;
/** Of a preview, its longer side. */
const PREVIEW_SIDE = 512;
const PREVIEW_QUALITY = 80;
/** Without a wish: what the eye cannot tell from the original in most pictures. */
const DEFAULT_QUALITY = 90;
/** At a time in one process: two, and on a small machine one, so that a processor is left to the event loops. */
const MAX_OPERATIONS = Math.max(1, Math.min(2, availableParallelism() - 1));
/** From here up a picture that must be held whole takes all places: 16 megapixels are 64 to 128 MB. */
const LARGE_PIXELS = 16_000_000;
/** The most any operation within the limits was seen to take, on one slow core, and as much again. */
const MAX_OPERATION_SECONDS = 30;
/** The picture is decoded into so few pixels a side: all of it is read, and nothing of it kept. */
const PROBE_SIDE = 8;

/** The loaders of sharp that may run: what it could read besides is never wanted of bytes from outside. */
const LOADERS = [
  'VipsForeignLoadPngBuffer',
  'VipsForeignLoadJpegBuffer',
  'VipsForeignLoadWebpBuffer',
  'VipsForeignLoadSvgBuffer',
];

export type SharpModule = typeof sharpModule;

export class PictureError extends Error {
  readonly problem: PictureProblem;

  constructor(problem: PictureProblem, cause?: unknown) {
    super(`The picture is refused: ${problem}.`, cause === undefined ? undefined : { cause });
    this.name = 'PictureError';
    this.problem = problem;
  }
}

/** As it is seen: with the orientation that its metadata asks for. */
export interface Picture {
  readonly format: PictureFormat;
  readonly contentType: string;
  readonly width: number;
  readonly height: number;
  readonly hasAlpha: boolean;
}

export interface EncodedPicture {
  readonly bytes: Buffer;
  readonly contentType: string;
  readonly width: number;
  readonly height: number;
}

export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

/** How sharp opens any bytes: broken ones are an error, sizes are limited, rows are read in order where that can be. */
export const PICTURE_INPUT = {
  failOn: 'warning',
  limitInputPixels: MAX_PICTURE_PIXELS,
  sequentialRead: true,
} as const satisfies SharpOptions;

const places = new Semaphore(MAX_OPERATIONS);
let loading: Promise<SharpModule> | undefined;

/** Lends sharp for one operation, when it is its turn. `pixels`: of what is held in memory whole; 0 when nothing is. */
export async function withSharp<Result>(
  pixels: number,
  work: (sharp: SharpModule) => Promise<Result>,
): Promise<Result> {
  loading ??= loadSharp();
  const sharp = await loading;
  return places.runExclusive(() => work(sharp), pixels > LARGE_PIXELS ? MAX_OPERATIONS : 1);
}

async function loadSharp(): Promise<SharpModule> {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({ operation: LOADERS });
  return sharp;
}

/**
 * What the picture is, after all of it was decoded once. Throws `PictureError` for what is not exactly one still PNG, JPEG or WebP
 * of at most 64 megapixels and 16,384 pixels a side. Only interlaced, progressive and WebP pictures are held in memory meanwhile.
 */
export async function inspectPicture(bytes: Buffer): Promise<Picture> {
  return opened(bytes, false, async (picture, metadata) => {
    await picture.resize(PROBE_SIDE, PROBE_SIDE, { fit: 'fill' }).raw().toBuffer();
    const format = metadata.format as PictureFormat;
    return { format, contentType: `image/${format}`, ...metadata.autoOrient, hasAlpha: metadata.hasAlpha };
  });
}

/** The same picture in another format; upright, in sRGB, and without metadata. `compression`: 0 to 100 as the convention counts it, 100 is best. */
export async function encodePicture(
  bytes: Buffer,
  { format, compression }: { format: PictureFormat; compression?: number | undefined },
): Promise<EncodedPicture> {
  return opened(bytes, true, (picture) => encoded(picture, format, compression));
}

/** Small, marked so that it can be looked at and not used, as JPEG. */
export async function makePreview(bytes: Buffer): Promise<EncodedPicture> {
  return opened(bytes, true, async (picture, _metadata, sharp) => {
    const { data, info } = await picture
      .resize(PREVIEW_SIDE, PREVIEW_SIDE, { fit: 'inside', withoutEnlargement: true })
      .flatten({ background: '#ffffff' })
      .raw()
      .toBuffer({ resolveWithObject: true });
    const { width, height, channels } = info;
    const marked = sharp(data, { raw: { width, height, channels } })
      .toColourspace('srgb')
      .composite([{ input: Buffer.from(watermark(info)) }]);
    return encoded(marked, 'jpeg', PREVIEW_QUALITY);
  });
}

/** A mask of exactly this size, as PNG: no edge of it becomes blurred. One of the right size is given back as it is. */
export async function matchSize(mask: Buffer, { width, height }: PictureSize): Promise<Buffer> {
  return opened(mask, true, async (picture, { autoOrient, format }) => {
    if (format === 'png' && autoOrient.width === width && autoOrient.height === height) return mask;
    return picture.ensureAlpha().resize(width, height, { fit: 'fill', kernel: 'nearest' }).png().toBuffer();
  });
}

/** As bytes of this format. JPEG has no transparency: white is put behind. */
export async function encoded(
  picture: Sharp,
  format: PictureFormat,
  compression: number | undefined,
): Promise<EncodedPicture> {
  const quality = Math.max(1, compression ?? DEFAULT_QUALITY);
  picture.timeout({ seconds: MAX_OPERATION_SECONDS });
  if (format === 'png') picture.png({ compressionLevel: 6 });
  else if (format === 'webp') picture.webp({ quality, effort: 3 });
  else picture.flatten({ background: '#ffffff' }).jpeg({ quality });
  const { data, info } = await picture.toBuffer({ resolveWithObject: true });
  return { bytes: data, contentType: `image/${format}`, width: info.width, height: info.height };
}

/** Lends the picture, upright, after its file was found to be a picture within the limits. */
async function opened<Result>(
  bytes: Buffer,
  isUpright: boolean,
  work: (picture: Sharp, metadata: Metadata, sharp: SharpModule) => Promise<Result>,
): Promise<Result> {
  const file = readPictureFile(bytes);
  if (typeof file === 'string') throw new PictureError(file);
  const pixels = file.width * file.height;
  if (pixels === 0) throw new PictureError('damaged');
  if (pixels > MAX_PICTURE_PIXELS || Math.max(file.width, file.height) > MAX_PICTURE_SIDE)
    throw new PictureError('too_large');
  return withSharp(file.isHeldWhole ? pixels : 0, async (sharp) => {
    try {
      const picture = sharp(bytes, { ...PICTURE_INPUT, autoOrient: isUpright });
      picture.timeout({ seconds: MAX_OPERATION_SECONDS });
      const metadata = await picture.metadata();
      if (metadata.format !== file.format || metadata.width !== file.width || metadata.height !== file.height)
        throw new Error('The decoder sees another picture than its file says.');
      return await work(picture, metadata, sharp);
    } catch (error) {
      throw new PictureError('damaged', error);
    }
  });
}

/** The word across the whole picture, light on dark, so that it is seen on any. */
function watermark({ width, height }: PictureSize): string {
  const letterPx = Math.max(6, Math.round(Math.max(width, height) / 18));
  const reach = width + height;
  let path = '';
  for (let y = -reach; y < reach; y += letterPx * 4) {
    const word = letter('Preview  ', 0, 0, letterPx);
    for (let x = -reach; x < reach; x += word.width + letterPx * 2)
      path += letter('Preview', x + ((y / letterPx) % 8) * letterPx, y, letterPx).path;
  }
  const line = letterPx / 6;
  const stroke = (colour: string, opacity: number, thickness: number) =>
    `<path d="${path}" fill="none" stroke="${colour}" stroke-opacity="${opacity}" stroke-width="${thickness}" stroke-linecap="round" stroke-linejoin="round" transform="rotate(-30)"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${stroke('#000', 0.25, line * 2)}${stroke('#fff', 0.55, line)}</svg>`;
}
