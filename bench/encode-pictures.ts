/**
 * What sharp alone needs to encode pictures, in a process of its own: draws four and encodes them in each format with the settings
 * of core/pictures.ts, once from pixels and once from PNG, and reports the CPU milliseconds of all four to the parent over IPC.
 */
import sharp, { type Sharp } from 'sharp';
import { encoded } from '../core/pictures.ts';
import { median } from './latency.ts';
import { makeNoise } from './pictures.ts';
import { FORMATS, type Format, IMAGE_SIDE, IMAGES_PER_REQUEST, NOISE_BLUR } from './wire.ts';

const ROUNDS = 7;

/** Of four pictures, by what they are encoded from. */
export type EncodingMs = Readonly<Record<'pixels' | 'png', Readonly<Record<Format, number>>>>;

async function encodingMs(open: readonly (() => Sharp)[], format: Format): Promise<number> {
  const samples: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = process.cpuUsage();
    for (const one of open) await encoded(one(), format, undefined);
    const { user, system } = process.cpuUsage(before);
    samples.push((user + system) / 1000);
  }
  return median(samples.slice(1)); // the first one warms up
}

async function allFormats(open: readonly (() => Sharp)[]): Promise<Record<Format, number>> {
  const byFormat = { png: 0, jpeg: 0, webp: 0 };
  for (const format of FORMATS) byFormat[format] = await encodingMs(open, format);
  return byFormat;
}

const fromPixels: (() => Sharp)[] = [];
const fromPng: (() => Sharp)[] = [];
while (fromPng.length < IMAGES_PER_REQUEST) {
  const png = await makeNoise(IMAGE_SIDE, IMAGE_SIDE, NOISE_BLUR);
  const { data, info } = await sharp(png).raw().toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  fromPixels.push(() => sharp(data, { raw: { width, height, channels } }));
  fromPng.push(() => sharp(png));
}
const result: EncodingMs = { pixels: await allFormats(fromPixels), png: await allFormats(fromPng) };
process.send?.(result);
process.disconnect?.();
