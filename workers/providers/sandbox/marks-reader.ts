/** Reads the marks that marks.ts puts into speech: finds each piece by its preamble, and believes it when its checksum is right. */
import {
  checksum,
  GROUPS,
  MARK_RATE,
  MAX_PAYLOAD_BYTES,
  markHz,
  PREAMBLE,
  SYMBOL_SAMPLES,
  TONES_PER_GROUP,
  toneOf,
  UTF16_FLAG,
} from './marks.ts';

/** Energies are known for every so many samples (1 ms): near enough to find where a symbol begins. */
const HOP_SAMPLES = 24;
const TONES = GROUPS * TONES_PER_GROUP;
/** Of a group's energy, at the tone that should sound, on average over a preamble; a quarter is chance. */
const MIN_SHARE = 0.6;
const HEADER_BYTES = 3;
const CHECKSUM_BYTES = 2;
/** Of a piece whose checksum is wrong, so many of the tones that were hardest to tell are tried the other way. */
const MAX_DOUBTS = 5;

/** Four tones in each symbol: which was the loudest, which the next, and how much louder. */
interface Doubt {
  readonly symbol: number;
  readonly group: number;
  readonly second: number;
  /** The second's energy over the first's. */
  readonly closeness: number;
}

export interface ReadPiece {
  readonly number: number;
  readonly isUtf16: boolean;
  readonly payload: Buffer;
}

/** Read at once: energies of half a minute are 8 MB. */
const WINDOW_SAMPLES = 30 * MARK_RATE;
/** Longer than any piece lasts, so that none is cut in two by windows. */
const OVERLAP_SAMPLES = Math.ceil(1.2 * MARK_RATE);

/** Hears speech as it is decoded, and writes down its pieces. One near the seam of two windows may be there twice. */
export class MarksReader {
  readonly pieces: ReadPiece[] = [];
  #heard = new Float32Array(WINDOW_SAMPLES);
  #length = 0;

  /** `speech`: at MARK_RATE, one channel. */
  push(speech: Float32Array): void {
    for (let at = 0; at < speech.length; ) {
      const part = speech.subarray(at, at + WINDOW_SAMPLES - this.#length);
      this.#heard.set(part, this.#length);
      this.#length += part.length;
      at += part.length;
      if (this.#length < WINDOW_SAMPLES) continue;
      this.pieces.push(...readPieces(this.#heard));
      this.#heard.copyWithin(0, WINDOW_SAMPLES - OVERLAP_SAMPLES);
      this.#length = OVERLAP_SAMPLES;
    }
  }

  end(): void {
    this.pieces.push(...readPieces(this.#heard.subarray(0, this.#length)));
    this.#length = 0;
  }
}

/** The pieces in the order of their time, each time it was heard. */
function readPieces(speech: Float32Array): ReadPiece[] {
  const hops = Math.floor(speech.length / HOP_SAMPLES);
  const sums = prefixSums(speech, hops);
  const pieces: { at: number; piece: ReadPiece }[] = [];
  for (const symbolSamples of SYMBOL_SAMPLES) {
    const hearing = new Hearing(sums, hops, symbolSamples / HOP_SAMPLES);
    for (let at = 0; at < hops; at += 1) {
      const best = hearing.preambleNear(at);
      if (best === undefined) continue;
      const read = hearing.pieceAt(best + PREAMBLE.length * hearing.hopsPerSymbol);
      if (read === undefined) continue;
      pieces.push({ at: best, piece: read.piece });
      at = read.end - 2;
    }
  }
  return pieces.toSorted((a, b) => a.at - b.at).map(({ piece }) => piece);
}

/** Each tone's complex amplitude, summed up to each hop: any stretch's energy is one subtraction. */
function prefixSums(speech: Float32Array, hops: number): Float64Array {
  const sums = new Float64Array((hops + 1) * TONES * 2);
  for (let tone = 0; tone < TONES; tone += 1) {
    const step =
      (2 * Math.PI * markHz(Math.floor(tone / TONES_PER_GROUP), tone % TONES_PER_GROUP)) / MARK_RATE;
    const [turnReal, turnImaginary] = [Math.cos(step), Math.sin(step)];
    let [real, imaginary, sumReal, sumImaginary] = [1, 0, 0, 0];
    for (let hop = 0; hop < hops; hop += 1) {
      const end = (hop + 1) * HOP_SAMPLES;
      for (let at = hop * HOP_SAMPLES; at < end; at += 1) {
        const value = speech[at] ?? 0;
        sumReal += value * real;
        sumImaginary += value * imaginary;
        const next = real * turnReal - imaginary * turnImaginary;
        imaginary = real * turnImaginary + imaginary * turnReal;
        real = next;
      }
      // The rotating factor would slowly grow or shrink.
      const length = Math.hypot(real, imaginary);
      real /= length;
      imaginary /= length;
      const place = ((hop + 1) * TONES + tone) * 2;
      sums[place] = sumReal;
      sums[place + 1] = sumImaginary;
    }
  }
  return sums;
}

class Hearing {
  readonly #sums: Float64Array;
  readonly #hops: number;
  readonly hopsPerSymbol: number;

  constructor(sums: Float64Array, hops: number, hopsPerSymbol: number) {
    this.#sums = sums;
    this.#hops = hops;
    this.hopsPerSymbol = hopsPerSymbol;
  }

  /** Where a preamble begins, when one seems to begin at this hop: the best place within a symbol from here. */
  preambleNear(at: number): number | undefined {
    if (this.#preambleShare(at) < MIN_SHARE) return undefined;
    let best = at;
    let bestShare = 0;
    for (let place = at; place < at + this.hopsPerSymbol; place += 1) {
      const share = this.#preambleShare(place);
      if (share <= bestShare) continue;
      best = place;
      bestShare = share;
    }
    return best;
  }

  pieceAt(start: number): { piece: ReadPiece; end: number } | undefined {
    const [first = 0] = this.#symbols(start, 1).bytes;
    const length = first & ~UTF16_FLAG;
    if (length === 0 || length > MAX_PAYLOAD_BYTES) return undefined;
    const count = HEADER_BYTES + length + CHECKSUM_BYTES;
    const end = start + count * this.hopsPerSymbol;
    if (end > this.#hops) return undefined;
    const { bytes, doubts } = this.#symbols(start, count);
    // The first symbol stands: another length would be another piece.
    const hardest = doubts
      .filter(({ symbol }) => symbol > 0)
      .toSorted((a, b) => b.closeness - a.closeness)
      .slice(0, MAX_DOUBTS);
    for (let choice = 0; choice < 1 << hardest.length; choice += 1) {
      const tried = Buffer.from(bytes);
      for (const [index, doubt] of hardest.entries()) if ((choice & (1 << index)) !== 0) put(tried, doubt);
      const body = tried.subarray(0, HEADER_BYTES + length);
      if (checksum(body) !== tried.readUInt16BE(body.length)) continue;
      const isUtf16 = (first & UTF16_FLAG) !== 0;
      return { piece: { number: body.readUInt16BE(1), isUtf16, payload: body.subarray(HEADER_BYTES) }, end };
    }
    return undefined;
  }

  #preambleShare(at: number): number {
    if (at + PREAMBLE.length * this.hopsPerSymbol > this.#hops) return 0;
    let share = 0;
    for (const [index, byte] of PREAMBLE.entries())
      for (let group = 0; group < GROUPS; group += 1)
        share += this.#share(at + index * this.hopsPerSymbol, group, toneOf(byte, group));
    return share / (PREAMBLE.length * GROUPS);
  }

  /** Of the group's energy in one symbol, what this tone has. */
  #share(at: number, group: number, tone: number): number {
    let all = 0;
    let own = 0;
    for (let other = 0; other < TONES_PER_GROUP; other += 1) {
      const energy = this.#energy(at, group * TONES_PER_GROUP + other);
      all += energy;
      if (other === tone) own = energy;
    }
    return all > 0 ? own / all : 0;
  }

  #symbols(start: number, count: number): { bytes: Buffer; doubts: Doubt[] } {
    const bytes = Buffer.alloc(count);
    const doubts: Doubt[] = [];
    for (let symbol = 0; symbol < count; symbol += 1) {
      for (let group = 0; group < GROUPS; group += 1) {
        const energies = Array.from({ length: TONES_PER_GROUP }, (_, tone) => ({
          tone,
          energy: this.#energy(start + symbol * this.hopsPerSymbol, group * TONES_PER_GROUP + tone),
        })).toSorted((a, b) => b.energy - a.energy);
        const [first, next] = energies;
        if (first === undefined || next === undefined) continue;
        bytes[symbol] = ((bytes[symbol] ?? 0) << 2) | first.tone;
        doubts.push({ symbol, group, second: next.tone, closeness: next.energy / first.energy });
      }
    }
    return { bytes, doubts };
  }

  #energy(at: number, tone: number): number {
    const end = ((at + this.hopsPerSymbol) * TONES + tone) * 2;
    const start = (at * TONES + tone) * 2;
    const real = (this.#sums[end] ?? 0) - (this.#sums[start] ?? 0);
    const imaginary = (this.#sums[end + 1] ?? 0) - (this.#sums[start + 1] ?? 0);
    return real * real + imaginary * imaginary;
  }
}

function put(bytes: Buffer, { symbol, group, second }: Doubt): void {
  const shift = 6 - 2 * group;
  bytes[symbol] = ((bytes[symbol] ?? 0) & ~(3 << shift)) | (second << shift);
}
