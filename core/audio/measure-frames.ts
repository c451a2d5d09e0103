/**
 * How long an MP3, FLAC or Ogg (Opus, Vorbis, FLAC) lasts: every frame is found and its samples are added up. What a Xing header, a
 * STREAMINFO or a granule position says counts for the silence around the audio only.
 */
import CodecParser, { type CodecFrame, type MimeType, type OggPage, type OpusHeader } from 'codec-parser';
import { AudioError } from './audio-file.ts';
import { type Measured, trimmed } from './measured.ts';

const OPUS_RATE = 48_000;
/** Less of the file than this in frames, and it is something else that looks like frames here and there. */
const MIN_SHARE = 0.5;
/** The share is looked at after each of so many bytes: what has no frames is slow to search. */
const STEP_BYTES = 256 * 1024;

export function measureMp3(bytes: Buffer): Measured {
  const sum = new Sum();
  let edges: { samples: number } | undefined;
  // The last frame is only seen when nothing but the end follows it.
  for (const frame of framesOf(bytes.subarray(0, bytes.length - endingTags(bytes)), 'audio/mpeg', 0)) {
    if (sum.isEmpty && edges === undefined) {
      edges = infoFrame(frame);
      if (edges !== undefined) continue;
    }
    sum.add(frame);
  }
  const parts = sum.measured();
  return trimmed(parts, parts.seconds - (edges?.samples ?? 0) / parts.sampleRate);
}

export function measureFlac(bytes: Buffer): Measured {
  const sum = new Sum();
  for (const frame of framesOf(bytes, 'audio/flac', flacMetadata(bytes))) sum.add(frame);
  return sum.measured();
}

export function measureOgg(bytes: Buffer): Measured {
  const sum = new Sum();
  let preSkip = 0;
  let lastGranule = 0;
  for (const page of parsed<OggPage>(bytes, 'application/ogg')) {
    for (const frame of page.codecFrames) {
      if (sum.isEmpty) preSkip = (frame.header as Partial<OpusHeader>).preSkip ?? 0;
      sum.add(frame);
    }
    if (page.codecFrames.length > 0) lastGranule = Number(page.absoluteGranulePosition);
  }
  const parts = sum.measured();
  const rate = preSkip > 0 ? OPUS_RATE : parts.sampleRate;
  return trimmed(parts, (lastGranule - preSkip) / rate);
}

class Sum {
  #seconds = 0;
  #sampleRate = 0;

  get isEmpty(): boolean {
    return this.#sampleRate === 0;
  }

  add({ samples, header }: CodecFrame): void {
    if (!(header.sampleRate > 0) || !(samples >= 0)) throw new AudioError('damaged');
    this.#seconds += samples / header.sampleRate;
    this.#sampleRate = header.sampleRate;
  }

  measured(): Measured {
    if (this.isEmpty) throw new AudioError('not_audio');
    return { seconds: this.#seconds, sampleRate: this.#sampleRate };
  }
}

/** `skipped`: bytes at the beginning that hold no frames and say so. */
function* framesOf(bytes: Buffer, type: MimeType, skipped: number): Generator<CodecFrame> {
  let found = 0;
  for (const frame of parsed<CodecFrame>(bytes, type, (seen) => {
    if (found < (seen - skipped - STEP_BYTES) * MIN_SHARE) throw new AudioError('not_audio');
  })) {
    found += frame.data.length;
    yield frame;
  }
  if (found < (bytes.length - skipped) * MIN_SHARE) throw new AudioError('not_audio');
}

/** One at a time: a file of a million frames is never a million objects. */
function* parsed<Part extends CodecFrame | OggPage>(
  bytes: Buffer,
  type: MimeType,
  onStep: (bytesSeen: number) => void = () => {},
): Generator<Part> {
  const parser = new CodecParser<Part>(type, { enableFrameCRC32: false });
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    yield* parser.parseChunk(bytes.subarray(at, at + STEP_BYTES)) as IterableIterator<Part>;
    onStep(at);
  }
  yield* parser.flush() as IterableIterator<Part>;
}

/**
 * The samples that an MP3's Xing or Info frame says to leave out at both edges (LAME's extension); undefined: it is no such frame.
 * http://gabriel.mp3-tech.org/mp3infotag.html
 */
function infoFrame({ data }: CodecFrame): { samples: number } | undefined {
  const frame = Buffer.from(data.buffer, data.byteOffset, data.length);
  const at = [36, 21, 13].find((offset) =>
    /^(Xing|Info)$/.test(frame.toString('latin1', offset, offset + 4)),
  );
  if (at === undefined || frame.length < at + 8) return undefined;
  const flags = frame.readUInt32BE(at + 4);
  const sizes: readonly [number, number][] = [
    [1, 4],
    [2, 4],
    [4, 100],
    [8, 4],
  ];
  let lame = at + 8;
  for (const [flag, bytes] of sizes) if ((flags & flag) !== 0) lame += bytes;
  if (frame.length < lame + 24) return { samples: 0 };
  const edges = frame.readUIntBE(lame + 21, 3);
  return { samples: (edges >> 12) + (edges & 0xfff) };
}

/** Bytes of the tags behind an MP3: ID3v1 is 128, APEv2 says how long it is. */
function endingTags(bytes: Buffer): number {
  let tags = bytes.toString('latin1', bytes.length - 128, bytes.length - 125) === 'TAG' ? 128 : 0;
  const footer = bytes.length - tags - 32;
  if (footer >= 0 && bytes.toString('latin1', footer, footer + 8) === 'APETAGEX')
    tags += 32 + bytes.readUInt32LE(footer + 12);
  return Math.min(tags, bytes.length);
}

/** Bytes in front of the first frame: blocks that say how long they are, pictures among them. */
function flacMetadata(bytes: Buffer): number {
  let at = 4;
  for (let isLast = false; !isLast; ) {
    if (at + 4 > bytes.length) throw new AudioError('damaged');
    isLast = ((bytes[at] ?? 0) & 0x80) !== 0;
    at += 4 + bytes.readUIntBE(at + 1, 3);
  }
  if (at > bytes.length) throw new AudioError('damaged');
  return at;
}
