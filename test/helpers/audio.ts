/** Audio for tests: made by hand where that is easy, by ffmpeg where it is not; and ffmpeg as the decoder that knows none of our code. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PCM_BYTES_PER_SAMPLE, PCM_RATE, wavHeader } from '../../core/audio/pcm.ts';

const run = promisify(execFile);
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;

/** Bare samples of one tone. */
export function tonePcm(seconds: number, hz = 440, level = 0.3): Buffer {
  const pcm = Buffer.alloc(Math.round(seconds * PCM_RATE) * PCM_BYTES_PER_SAMPLE);
  for (let at = 0; at < pcm.length / 2; at += 1)
    pcm.writeInt16LE(Math.round(32_767 * level * Math.sin((2 * Math.PI * hz * at) / PCM_RATE)), at * 2);
  return pcm;
}

export function toneWav(seconds: number, hz = 440): Buffer {
  const pcm = tonePcm(seconds, hz);
  return Buffer.concat([wavHeader(pcm.length), pcm]);
}

/** Frames of 1152 samples at 44.1 kHz, 128 kbit/s, with nothing in them. */
export function silentMp3(seconds: number): Buffer {
  const frame = Buffer.alloc(417);
  frame.writeUInt32BE(0xff_fb_90_c4, 0);
  return Buffer.concat(Array.from({ length: Math.ceil((seconds * 44_100) / 1152) }, () => frame));
}

const FRAME_BYTES = 417;

/** So many of those frames, none like another: what is missing or twice is seen. */
export function numberedMp3(count: number, first = 0): Buffer {
  return Buffer.concat(
    Array.from({ length: count }, (_, index) => {
      const frame = Buffer.alloc(FRAME_BYTES);
      frame.writeUInt32BE(0xff_fb_90_c4, 0);
      // behind what a decoder reads of a silent frame
      frame.writeUInt32BE(first + index, FRAME_BYTES - 4);
      return frame;
    }),
  );
}

/** Runs ffmpeg on a file of these bytes; `ending` says what it makes. */
export async function ffmpeg(input: Buffer, ending: string, ...options: string[]): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-audio-'));
  try {
    const [from, to] = [join(folder, 'in'), join(folder, `out.${ending}`)];
    await writeFile(from, input);
    await run('ffmpeg', ['-v', 'error', '-y', '-i', from, ...options, to], { maxBuffer: MAX_OUTPUT_BYTES });
    return await readFile(to);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The samples of a file as ffmpeg hears them, at 24 kHz in one channel. Rejects when it finds anything wrong with it. */
export async function decoded(audio: Buffer): Promise<Float32Array> {
  // A WAV of unknown length ends, to ffmpeg, in the middle of a packet.
  const isStreamedWav = audio.toString('latin1', 0, 4) === 'RIFF' && audio.readUInt32LE(40) === 0xffff_ffff;
  const strict = isStreamedWav ? [] : ['-xerror'];
  const raw = await ffmpeg(audio, 'f32', ...strict, '-ar', `${PCM_RATE}`, '-ac', '1', '-f', 'f32le');
  return new Float32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.length));
}

/** How strong a tone is in some samples, of a full scale of 1. */
export function strengthOf(samples: Float32Array, hz: number): number {
  let real = 0;
  let imaginary = 0;
  for (const [at, value] of samples.entries()) {
    real += value * Math.cos((2 * Math.PI * hz * at) / PCM_RATE);
    imaginary += value * Math.sin((2 * Math.PI * hz * at) / PCM_RATE);
  }
  return (2 * Math.hypot(real, imaginary)) / samples.length;
}

export async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

export async function collected(audio: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of audio) parts.push(part);
  return Buffer.concat(parts);
}
