/** From a drawing to pixels, and what is done with them: edits within a mask, rough versions, and files. */
import { buffer } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { OverlayOptions, Sharp } from 'sharp';
import {
  type EncodedPicture,
  encoded,
  PICTURE_INPUT,
  type PictureSize,
  type SharpModule,
  withSharp,
} from '../../../core/pictures.ts';
import type { ImageCall, ImageInput } from '../provider.ts';

/** Eight bits each of red, green, blue and opacity. */
export interface Raster extends PictureSize {
  readonly pixels: Buffer;
}

export interface Area extends PictureSize {
  readonly left: number;
  readonly top: number;
}

/** Of a mask looked at before the event loop gets its turn. */
const PIXELS_A_TURN = 4_000_000;

export async function rasterOf(svg: string, { width, height }: PictureSize): Promise<Raster> {
  return withSharp(width * height, (sharp) => pixelsOf(sharp(Buffer.from(svg), PICTURE_INPUT)));
}

/** A picture of the caller's, upright, covering the size; what is over is cut off evenly. */
export async function coverRaster(image: ImageInput, size: PictureSize): Promise<Raster> {
  return withSharp(size.width * size.height, async (sharp) =>
    pixelsOf(
      sharp(await bytesOf(image), { ...PICTURE_INPUT, autoOrient: true }).resize({ ...size, fit: 'cover' }),
    ),
  );
}

async function bytesOf(image: ImageInput): Promise<Buffer> {
  return buffer(await image.open());
}

/** The mask's opacity, one byte a pixel, cut as the picture it belongs to; `undefined` when it has none. */
export async function opacityOf(image: ImageInput, size: PictureSize): Promise<Buffer | undefined> {
  return withSharp(size.width * size.height, async (sharp) => {
    const mask = sharp(await bytesOf(image), { ...PICTURE_INPUT, autoOrient: true });
    if (!(await mask.metadata()).hasAlpha) return undefined;
    return mask
      .resize({ ...size, fit: 'cover', kernel: 'nearest' })
      .extractChannel('alpha')
      .raw()
      .toBuffer();
  });
}

/** Where the mask is transparent; `undefined` when nowhere. */
export async function transparentArea(
  opacity: Buffer,
  { width, height }: PictureSize,
): Promise<Area | undefined> {
  let left = width;
  let right = -1;
  let top = height;
  let bottom = -1;
  for (let y = 0; y < height; y += 1) {
    if (y > 0 && y % Math.ceil(PIXELS_A_TURN / width) === 0) await nextTurn();
    const row = opacity.subarray(y * width, (y + 1) * width);
    const first = row.indexOf(0);
    if (first === -1) continue;
    top = Math.min(top, y);
    bottom = y;
    left = Math.min(left, first);
    right = Math.max(right, row.lastIndexOf(0));
  }
  return bottom === -1 ? undefined : { left, top, width: right - left + 1, height: bottom - top + 1 };
}

export async function composed(base: Raster, layers: readonly OverlayOptions[]): Promise<Raster> {
  return withSharp(base.width * base.height, (sharp) =>
    pixelsOf(fromRaster(sharp, base).composite([...layers])),
  );
}

/** Puts back into `edited` the pixels where the mask is not transparent, as they were, to the bit. */
export async function restoreOpaque(edited: Raster, base: Raster, opacity: Buffer): Promise<void> {
  const to = wordsOf(edited.pixels);
  const from = wordsOf(base.pixels);
  for (let start = 0; start < to.length; start += PIXELS_A_TURN) {
    if (start > 0) await nextTurn();
    const end = Math.min(start + PIXELS_A_TURN, to.length);
    for (let index = start; index < end; index += 1) if (opacity[index] !== 0) to[index] = from[index] ?? 0;
  }
}

/** A pixel each. */
function wordsOf(pixels: Buffer): Uint32Array {
  return new Uint32Array(pixels.buffer, pixels.byteOffset, pixels.length / 4);
}

/** In coarse squares, so many along the longer side. */
export async function rough(raster: Raster, squares: number): Promise<Raster> {
  const { width, height } = raster;
  return withSharp(width * height, async (sharp) => {
    const { data, info } = await fromRaster(sharp, raster)
      .resize(squares, squares, { fit: 'inside', withoutEnlargement: true })
      .raw()
      .toBuffer({ resolveWithObject: true });
    const small = sharp(data, { raw: { width: info.width, height: info.height, channels: 4 } });
    return pixelsOf(small.resize(width, height, { fit: 'fill', kernel: 'nearest' }));
  });
}

export async function fileOf(
  raster: Raster,
  { outputFormat, outputCompression }: Pick<ImageCall, 'outputFormat' | 'outputCompression'>,
): Promise<EncodedPicture> {
  return withSharp(raster.width * raster.height, (sharp) =>
    encoded(fromRaster(sharp, raster), outputFormat, outputCompression),
  );
}

function fromRaster(sharp: SharpModule, { pixels, width, height }: Raster): Sharp {
  return sharp(pixels, { ...PICTURE_INPUT, raw: { width, height, channels: 4 } });
}

async function pixelsOf(picture: Sharp): Promise<Raster> {
  const { data, info } = await picture
    .toColourspace('srgb')
    .ensureAlpha()
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true });
  return { pixels: data, width: info.width, height: info.height };
}
