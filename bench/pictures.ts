/** Pictures of the benchmark: noise over grey, blurred a little, which weighs as much as what image models make. */
import sharp from 'sharp';
import type { Format } from './wire.ts';

const NOISE_SIGMA = 30;

sharp.concurrency(1);

/** Sharp noise (`blur` 0) hardly compresses: as a PNG 1536×1024 of it are 4 MB. */
export function makeNoise(
  width: number,
  height: number,
  blur: number,
  format: Format = 'png',
): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: NOISE_SIGMA } as const;
  const picture = sharp({ create: { width, height, channels: 3, background: '#888', noise } });
  if (blur > 0) picture.blur(blur);
  // a quality would make a PNG of few colours
  return picture.toFormat(format, format === 'png' ? { compressionLevel: 6 } : { quality: 90 }).toBuffer();
}
