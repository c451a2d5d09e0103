/** Bare samples as the OpenAI convention has them, and the header that makes a WAV of them. */

export const PCM_RATE = 24_000;
/** Signed 16-bit little-endian, one channel. */
export const PCM_BYTES_PER_SAMPLE = 2;
export const PCM_BYTES_PER_SECOND = PCM_RATE * PCM_BYTES_PER_SAMPLE;

const WAV_HEADER_BYTES = 44;
/** What streams say whose length is not known when they begin; players then play to the end. */
const UNKNOWN_BYTES = 0xffff_ffff;

/** In front of `pcmBytes` of samples; undefined: nobody knows how many will come. */
export function wavHeader(pcmBytes: number | undefined): Buffer {
  const header = Buffer.alloc(WAV_HEADER_BYTES);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(pcmBytes === undefined ? UNKNOWN_BYTES : WAV_HEADER_BYTES - 8 + pcmBytes, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(PCM_RATE, 24);
  header.writeUInt32LE(PCM_BYTES_PER_SECOND, 28);
  header.writeUInt16LE(PCM_BYTES_PER_SAMPLE, 32);
  header.writeUInt16LE(PCM_BYTES_PER_SAMPLE * 8, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(pcmBytes ?? UNKNOWN_BYTES, 40);
  return header;
}

/** The same bytes in pieces of whole samples and at most `maxBytes`; half a sample at the end is left out. */
export async function* wholeSamples(
  pcm: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const part of pcm) {
    const bytes = rest.length === 0 ? part : Buffer.concat([rest, part]);
    const whole = bytes.length - (bytes.length % PCM_BYTES_PER_SAMPLE);
    for (let at = 0; at < whole; at += maxBytes) yield bytes.subarray(at, Math.min(at + maxBytes, whole));
    rest = bytes.subarray(whole);
  }
}
