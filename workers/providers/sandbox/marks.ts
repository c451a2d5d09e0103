/**
 * Marks in the sandbox's speech that say what was spoken: faint tones between 5.2 and 7.2 kHz, above what its voices use and below
 * what MP3 encoders are careless with. A symbol is one byte: four tones at a time, one of four in each of four groups. Pieces of the
 * text follow one another with a checksum each, again and again until the speech ends. Read by marks-reader.ts.
 */

/** Samples a second, here and where they are read. */
export const MARK_RATE = 24_000;
const LOWEST_MARK_HZ = 5250;
/** Whole cycles in a symbol of either length, so that no tone is seen in another's place. */
const MARK_SPACING_HZ = 125;
export const GROUPS = 4;
export const TONES_PER_GROUP = 4;
/** 16 ms; 8 ms where the text would not fit otherwise. */
export const SYMBOL_SAMPLES = [384, 192] as const;
/** In front of each piece: each tone of each group in turn, there and back. */
export const PREAMBLE = [0x1b, 0xe4, 0x4e] as const;
/** Length and encoding, number of the piece (2), checksum (2). */
export const MAX_PAYLOAD_BYTES = 48;
export const UTF16_FLAG = 0x80;
const HEADER_BYTES = 3;
const CHECKSUM_BYTES = 2;

/** Of one tone, of a full scale of 1: 46 dB below it, and a little louder where it is short. */
const LEVELS: ReadonlyMap<number, number> = new Map([
  [384, 0.005],
  [192, 0.008],
]);
/** The tones of a symbol fade in and out: a sudden one would click through the whole band. */
const FADE_SAMPLES = 36;

/** The pieces of a text, ready to be sent. UTF-16 where it is shorter (Japanese, for one). */
export function piecesOf(text: string): Buffer[] {
  const utf8 = Buffer.from(text, 'utf8');
  const utf16 = Buffer.from(text, 'utf16le');
  const isUtf16 = utf16.length < utf8.length;
  const bytes = isUtf16 ? utf16 : utf8;
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += MAX_PAYLOAD_BYTES) {
    const payload = bytes.subarray(at, at + MAX_PAYLOAD_BYTES);
    const body = Buffer.alloc(HEADER_BYTES + payload.length);
    body.writeUInt8(payload.length | (isUtf16 ? UTF16_FLAG : 0), 0);
    body.writeUInt16BE(pieces.length, 1);
    payload.copy(body, HEADER_BYTES);
    const sum = Buffer.alloc(CHECKSUM_BYTES);
    sum.writeUInt16BE(checksum(body), 0);
    pieces.push(Buffer.concat([Buffer.from(PREAMBLE), body, sum]));
  }
  return pieces;
}

/** CRC-16/CCITT: https://reveng.sourceforge.io/crc-catalogue/16.htm#crc.cat.crc-16-ibm-3740 */
export function checksum(bytes: Uint8Array): number {
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ ((crc & 0x8000) === 0 ? 0 : 0x1021)) & 0xffff;
  }
  return crc;
}

/** Adds the marks of a text to speech of `totalSamples`, stretch by stretch. What does not fit even once is left out altogether. */
export class Marks {
  readonly #bytes: Buffer;
  readonly #symbolSamples: number;

  constructor(text: string, totalSamples: number) {
    const pieces = Buffer.concat(piecesOf(text));
    const fits = (samples: number) => pieces.length * samples <= totalSamples;
    this.#symbolSamples = fits(SYMBOL_SAMPLES[0]) ? SYMBOL_SAMPLES[0] : SYMBOL_SAMPLES[1];
    this.#bytes = fits(this.#symbolSamples) ? pieces : Buffer.alloc(0);
  }

  /** `start`: of this stretch, in samples from the beginning. */
  addTo(speech: Float32Array, start: number): void {
    if (this.#bytes.length === 0) return;
    const symbolSamples = this.#symbolSamples;
    for (let at = 0; at < speech.length; ) {
      const symbol = Math.floor((start + at) / symbolSamples);
      const begin = symbol * symbolSamples - start;
      const wave = waveOf(this.#bytes[symbol % this.#bytes.length] ?? 0, symbolSamples);
      const end = Math.min(begin + symbolSamples, speech.length);
      for (; at < end; at += 1) speech[at] = (speech[at] ?? 0) + (wave[at - begin] ?? 0);
    }
  }
}

const waves = new Map<number, Float32Array>();

function waveOf(byte: number, samples: number): Float32Array {
  const key = samples * 256 + byte;
  const known = waves.get(key);
  if (known !== undefined) return known;
  const wave = new Float32Array(samples);
  const level = LEVELS.get(samples) ?? 0;
  for (let group = 0; group < GROUPS; group += 1) {
    const step = 2 * Math.PI * (markHz(group, toneOf(byte, group)) / MARK_RATE);
    // Tones that begin alike would add up to a spike.
    for (let at = 0; at < samples; at += 1)
      wave[at] = (wave[at] ?? 0) + level * fade(at, samples) * Math.sin(step * at + group * group);
  }
  waves.set(key, wave);
  return wave;
}

function fade(at: number, samples: number): number {
  const edge = Math.min(at, samples - 1 - at);
  return edge >= FADE_SAMPLES ? 1 : 0.5 - 0.5 * Math.cos((Math.PI * (edge + 0.5)) / FADE_SAMPLES);
}

export function markHz(group: number, tone: number): number {
  return LOWEST_MARK_HZ + (group * TONES_PER_GROUP + tone) * MARK_SPACING_HZ;
}

/** Two bits of the byte, the highest first. */
export function toneOf(byte: number, group: number): number {
  return (byte >> (6 - 2 * group)) & 3;
}
