/**
 * What sharp alone needs to encode pictures, in a process of its own: draws four, decodes them to pixels, encodes those in each
 * format with the settings of core/pictures.ts, and reports the CPU milliseconds of all four together to the parent over IPC.
 */
import sharp from 'sharp';
import { encoded, type SharpModule } from '../core/pictures.ts';
import { median } from './latency.ts';
import { makeNoise } from './pictures.ts';
import { FORMATS, type Format, IMAGE_SIDE, IMAGES_PER_REQUEST, NOISE_BLUR } from './wire.ts';

const ROUNDS = 7;

export type EncodingMs = Readonly<Record<Format, number>>;

type Pixels = Awaited<ReturnType<typeof pixelsOf>>;

async function pixelsOf(sharpOf: SharpModule) {
  const png = await makeNoise(IMAGE_SIDE, IMAGE_SIDE, NOISE_BLUR);
  return sharpOf(png).raw().toBuffer({ resolveWithObject: true });
}

async function encodingMs(pictures: readonly Pixels[], format: Format): Promise<number> {
  const before = process.cpuUsage();
  for (const { data, info } of pictures) {
    const { width, height, channels } = info;
    await encoded(sharp(data, { raw: { width, height, channels } }), format, undefined);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const pictures: Pixels[] = [];
while (pictures.length < IMAGES_PER_REQUEST) pictures.push(await pixelsOf(sharp));
const result: Partial<Record<Format, number>> = {};
for (const format of FORMATS) {
  const samples: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) samples.push(await encodingMs(pictures, format));
  result[format] = median(samples.slice(1)); // the first one warms up
}
process.send?.(result);
process.disconnect?.();
