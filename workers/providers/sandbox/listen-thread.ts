/** The thread in which the sandbox decodes audio and listens for marks. Started and ended by transcription.ts. */
import { parentPort } from 'node:worker_threads';
import { type AudioFileType, findAudioFile } from '../../../core/audio/audio-file.ts';
import { MARK_RATE } from './marks.ts';
import { MarksReader, type ReadPiece } from './marks-reader.ts';

export interface Heard {
  readonly pieces: readonly ReadPiece[];
  readonly seconds: number;
}

/** What decoders are given at once: the smallest files make the most of it (silent FLAC, 70 MB). */
const STEP_BYTES = 4096;
/** Longer audio is listened to so far. */
const MAX_SECONDS = 30 * 60;

interface Decoded {
  readonly channelData: readonly Float32Array[];
  readonly sampleRate: number;
}

interface Decoder {
  decode(bytes: Uint8Array): Decoded | Promise<Decoded>;
  flush?(): Decoded | Promise<Decoded>;
  free(): unknown;
}

parentPort?.on('message', async (sent: Uint8Array) => {
  // Whatever a decoder says of a broken file: what was heard before counts.
  const reader = new MarksReader();
  const ear = new Ear(reader);
  await listen(Buffer.from(sent.buffer, sent.byteOffset, sent.byteLength), ear).catch(() => {});
  reader.end();
  parentPort?.postMessage({ pieces: reader.pieces, seconds: ear.seconds } satisfies Heard);
});

async function listen(bytes: Buffer, ear: Ear): Promise<void> {
  const { type, start } = findAudioFile(bytes);
  const decoder = await makeDecoder(type);
  if (decoder === undefined) return;
  try {
    for (let at = start; at < bytes.length && ear.seconds < MAX_SECONDS; at += STEP_BYTES)
      ear.hear(await decoder.decode(new Uint8Array(bytes.subarray(at, at + STEP_BYTES))));
    const rest = await decoder.flush?.();
    if (rest !== undefined) ear.hear(rest);
  } finally {
    decoder.free();
  }
}

/** Undefined: there is none for this type (AAC, Vorbis, containers). */
async function makeDecoder(type: AudioFileType): Promise<Decoder | undefined> {
  if (type === 'wav') return new WavDecoder();
  if (type === 'mp3') {
    const { MPEGDecoder } = await import('mpg123-decoder');
    return ready(new MPEGDecoder());
  }
  if (type === 'flac') {
    const { FLACDecoder } = await import('@wasm-audio-decoders/flac');
    return ready(new FLACDecoder());
  }
  if (type === 'ogg') {
    const { OggOpusDecoder } = await import('ogg-opus-decoder');
    return ready(new OggOpusDecoder());
  }
  return undefined;
}

async function ready<Kind extends { readonly ready: Promise<unknown> }>(decoder: Kind): Promise<Kind> {
  await decoder.ready;
  return decoder;
}

/** Mixes down, and brings to the rate of the marks: straight lines between samples do for tones so low. */
class Ear {
  readonly #reader: MarksReader;
  #samplesHeard = 0;
  /** Where the next sample of ours lies in what comes next, in samples of the file. */
  #place = 0;

  constructor(reader: MarksReader) {
    this.#reader = reader;
  }

  get seconds(): number {
    return this.#samplesHeard / MARK_RATE;
  }

  hear({ channelData, sampleRate }: Decoded): void {
    const [left, right] = channelData;
    if (left === undefined || left.length === 0 || !(sampleRate > 0)) return;
    const step = sampleRate / MARK_RATE;
    const speech = new Float32Array(Math.max(0, Math.ceil((left.length - 1 - this.#place) / step)));
    const value = (at: number) => (left[at] ?? 0) + (right?.[at] ?? 0);
    for (let index = 0; index < speech.length; index += 1) {
      const at = Math.floor(this.#place);
      const share = this.#place - at;
      speech[index] = value(at) * (1 - share) + value(at + 1) * share;
      this.#place += step;
    }
    this.#place = Math.max(0, this.#place - left.length);
    this.#samplesHeard += speech.length;
    this.#reader.push(speech);
  }
}

/** 16-bit samples behind a header whose claims are read as measure-wav.ts reads them: up to the end of the file. */
class WavDecoder implements Decoder {
  #form: { channels: number; sampleRate: number } | undefined;
  #rest = Buffer.alloc(0);

  decode(bytes: Uint8Array): Decoded {
    let all = Buffer.concat([this.#rest, bytes]);
    if (this.#form === undefined) {
      const format = all.indexOf('fmt ', 12, 'latin1');
      const data = all.indexOf('data', 12, 'latin1');
      if (format < 0 || data < 0 || all.readUInt16LE(format + 22) !== 16) throw new Error('Not 16 bits.');
      this.#form = { channels: all.readUInt16LE(format + 10), sampleRate: all.readUInt32LE(format + 12) };
      all = all.subarray(data + 8);
    }
    const { channels, sampleRate } = this.#form;
    const frames = Math.floor(all.length / (2 * channels));
    const first = new Float32Array(frames);
    for (let frame = 0; frame < frames; frame += 1)
      first[frame] = all.readInt16LE(frame * 2 * channels) / 32_768;
    this.#rest = all.subarray(frames * 2 * channels);
    return { channelData: [first], sampleRate };
  }

  free(): void {
    this.#rest = Buffer.alloc(0);
  }
}
