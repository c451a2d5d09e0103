/** What kind of audio file some bytes are, by the bytes alone: a name or a header of the caller says nothing here. */

export const AUDIO_FILE_TYPES = ['mp3', 'mp4', 'm4a', 'wav', 'webm', 'ogg', 'flac'] as const;

export type AudioFileType = (typeof AUDIO_FILE_TYPES)[number];

export const AUDIO_FILE_CONTENT_TYPES: Readonly<Record<AudioFileType, string>> = {
  mp3: 'audio/mpeg',
  mp4: 'audio/mp4',
  m4a: 'audio/mp4',
  wav: 'audio/wav',
  webm: 'audio/webm',
  ogg: 'audio/ogg',
  flac: 'audio/flac',
};

/** - `empty`: no bytes
 *  - `not_audio`: none of the types we take, or no audio in it
 *  - `unsupported`: one of the types, with a codec in it that we cannot measure
 *  - `damaged`: its structure is broken or ends too early
 *  - `too_long`: hours beyond the limit, or more parts than can be looked at in time */
export type AudioProblem = 'empty' | 'not_audio' | 'unsupported' | 'damaged' | 'too_long';

export class AudioError extends Error {
  readonly problem: AudioProblem;

  constructor(problem: AudioProblem, cause?: unknown) {
    super(`The audio is refused: ${problem}.`, cause === undefined ? undefined : { cause });
    this.name = 'AudioError';
    this.problem = problem;
  }
}

const EBML = Buffer.from([0x1a, 0x45, 0xdf, 0xa3]);
/** The document type stands in the first few elements of the header. */
const EBML_HEADER_BYTES = 64;
/** Several tags in a row are an encoder's mistake that exists; more are somebody's joke. */
const MAX_TAGS = 8;

/** The type, and where its own bytes begin behind ID3 tags. Throws `AudioError` when it is none of ours. */
export function findAudioFile(bytes: Buffer): { type: AudioFileType; start: number } {
  if (bytes.length === 0) throw new AudioError('empty');
  const start = endOfTags(bytes);
  const type = typeOf(bytes.subarray(start));
  if (type === undefined) throw new AudioError('not_audio');
  return { type, start };
}

/** ID3v2 tags say how long they are, in 28 bits; what is not as long is no file that anybody can play. */
function endOfTags(bytes: Buffer): number {
  let end = 0;
  for (let tags = 0; bytes.toString('latin1', end, end + 3) === 'ID3'; tags += 1) {
    if (tags === MAX_TAGS || end + 10 > bytes.length) throw new AudioError('damaged');
    const hasFooter = ((bytes[end + 5] ?? 0) & 0x10) !== 0;
    let length = 0;
    for (let index = 6; index < 10; index += 1) length = (length << 7) | ((bytes[end + index] ?? 0) & 0x7f);
    end += 10 + length + (hasFooter ? 10 : 0);
    if (end >= bytes.length) throw new AudioError('damaged');
  }
  return end;
}

function typeOf(bytes: Buffer): AudioFileType | undefined {
  const at = (start: number, end: number) => bytes.toString('latin1', start, end);
  if ((at(0, 4) === 'RIFF' || at(0, 4) === 'RF64') && at(8, 12) === 'WAVE') return 'wav';
  if (at(0, 4) === 'fLaC') return 'flac';
  if (at(0, 4) === 'OggS') return 'ogg';
  if (at(4, 8) === 'ftyp') return at(8, 11) === 'M4A' ? 'm4a' : 'mp4';
  if (bytes.subarray(0, 4).equals(EBML) && at(4, EBML_HEADER_BYTES).includes('webm')) return 'webm';
  // Eleven bits of sync, and a layer: ADTS (bare AAC) has the same sync and layer 0.
  const [first = 0, second = 0] = bytes;
  if (first === 0xff && (second & 0xe0) === 0xe0 && (second & 0x06) !== 0) return 'mp3';
  return undefined;
}
