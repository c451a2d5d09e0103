/** How long a WAV lasts: its samples are counted as they are in the file, whatever its header says of their number. */
import { AudioError } from './audio-file.ts';
import type { Measured } from './measured.ts';

const PCM = 1;
const FLOAT = 3;
const A_LAW = 6;
const MU_LAW = 7;
const EXTENSIBLE = 0xfffe;
const MEASURABLE: ReadonlySet<number> = new Set([PCM, FLOAT, A_LAW, MU_LAW]);

/** Of a claim about data: the bytes from there to the end of the file, or a chunk that is followed by more chunks. */
export function measureWav(bytes: Buffer): Measured {
  let form: { bytesPerFrame: number; sampleRate: number } | undefined;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const id = bytes.toString('latin1', at, at + 4);
    const size = bytes.readUInt32LE(at + 4);
    const start = at + 8;
    if (id === 'fmt ') form = readForm(bytes.subarray(start, start + size));
    if (id === 'data') {
      if (form === undefined) throw new AudioError('damaged');
      const available = bytes.length - start;
      const isTrue = size > 0 && size <= available && areChunks(bytes, start + size);
      const frames = Math.floor((isTrue ? size : available) / form.bytesPerFrame);
      return { seconds: frames / form.sampleRate, sampleRate: form.sampleRate };
    }
    at = start + size + (size % 2);
  }
  throw new AudioError('damaged');
}

function readForm(chunk: Buffer): { bytesPerFrame: number; sampleRate: number } {
  if (chunk.length < 16) throw new AudioError('damaged');
  const tag = chunk.readUInt16LE(0);
  const codec = tag === EXTENSIBLE && chunk.length >= 26 ? chunk.readUInt16LE(24) : tag;
  if (!MEASURABLE.has(codec)) throw new AudioError('unsupported');
  const channels = chunk.readUInt16LE(2);
  const sampleRate = chunk.readUInt32LE(4);
  // Not the header's own product of the two, which decoders pass over.
  const bytesPerFrame = channels * Math.ceil(chunk.readUInt16LE(14) / 8);
  if (bytesPerFrame === 0 || sampleRate === 0) throw new AudioError('damaged');
  return { bytesPerFrame, sampleRate };
}

/** Whether what is left is nothing but whole chunks: otherwise the data went on, and its size was a lie. */
function areChunks(bytes: Buffer, start: number): boolean {
  let at = start + (start % 2);
  while (at + 8 <= bytes.length) {
    if (!/^[\x20-\x7e]{4}$/.test(bytes.toString('latin1', at, at + 4))) return false;
    const size = bytes.readUInt32LE(at + 4);
    at += 8 + size + (size % 2);
    if (at > bytes.length + 1) return false;
  }
  return at >= bytes.length - 1;
}
