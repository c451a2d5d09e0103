/**
 * Where in a PNG, JPEG or WebP file its C2PA manifest store lies: walks the file's parts by their lengths, decodes no pixels and
 * believes nothing it has not measured. PNG: chunk `caBX`; JPEG: APP11 segments (JPEG XT, ISO/IEC 18477-3); WebP: RIFF chunk `C2PA`.
 */
import { crc32 } from 'node:zlib';

export type PictureFormat = 'png' | 'jpeg' | 'webp';

interface Range {
  readonly start: number;
  readonly length: number;
}

/** A manifest store, and from where to where it lies in the file, the format's own framing included. */
export interface ManifestPlace extends Range {
  readonly jumbf: Uint8Array;
  /** The parts of the file it is in. */
  readonly parts: readonly Range[];
  /** In JPEG: the number by which its segments are told from another box's; whoever writes it chooses it. */
  readonly boxInstance: number | undefined;
  /** What is wrong with its framing. */
  readonly fault: string | undefined;
}

export interface PictureParts {
  readonly format: PictureFormat;
  readonly manifests: readonly ManifestPlace[];
  /** Why the walk ended before the picture's data or its end. */
  readonly fault: string | undefined;
}

/** Far above what cameras and editors write (a chunk for each 8 KB: 3,200 of them in 25 MB). */
const MAX_PARTS = 50_000;
const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const TOO_MANY_PARTS = 'the file is in too many parts';
const CUT_SHORT = 'the file ends before its parts do';

/** Undefined: it is none of the three formats. */
export function findManifests(bytes: Uint8Array): PictureParts | undefined {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (file.subarray(0, 8).equals(PNG_SIGNATURE)) return walkPng(file);
  if (file.length >= 3 && file.readUIntBE(0, 3) === 0xffd8ff) return walkJpeg(file);
  if (file.toString('latin1', 0, 4) === 'RIFF' && file.toString('latin1', 8, 12) === 'WEBP') {
    return walkWebp(file);
  }
  return undefined;
}

/** The picture without any manifest store; the same bytes when it has none. */
export function withoutManifests(bytes: Buffer): Buffer {
  const places = findManifests(bytes)?.manifests ?? [];
  if (places.length === 0) return bytes;
  const kept: Buffer[] = [];
  let from = 0;
  for (const { start, length } of places
    .flatMap(({ parts }) => parts)
    .toSorted((a, b) => a.start - b.start)) {
    kept.push(bytes.subarray(from, start));
    from = start + length;
  }
  kept.push(bytes.subarray(from));
  return Buffer.concat(kept);
}

function walkPng(file: Buffer): PictureParts {
  const manifests: ManifestPlace[] = [];
  let start = PNG_SIGNATURE.length;
  for (let count = 0; count < MAX_PARTS; count += 1) {
    if (start + 12 > file.length) return { format: 'png', manifests, fault: CUT_SHORT };
    const length = 12 + file.readUInt32BE(start);
    const end = start + length;
    if (end > file.length) return { format: 'png', manifests, fault: CUT_SHORT };
    const type = file.toString('latin1', start + 4, start + 8);
    if (type === 'caBX') {
      const isIntact = crc32(file.subarray(start + 4, end - 4)) === file.readUInt32BE(end - 4);
      const fault = isIntact ? undefined : 'its checksum does not match';
      manifests.push(inOnePart(file.subarray(start + 8, end - 4), { start, length }, fault));
    }
    if (type === 'IEND') return { format: 'png', manifests, fault: undefined };
    start = end;
  }
  return { format: 'png', manifests, fault: TOO_MANY_PARTS };
}

function walkWebp(file: Buffer): PictureParts {
  const manifests: ManifestPlace[] = [];
  let start = 12;
  for (let count = 0; count < MAX_PARTS; count += 1) {
    if (start === file.length) return { format: 'webp', manifests, fault: undefined };
    if (start + 8 > file.length) return { format: 'webp', manifests, fault: CUT_SHORT };
    const size = file.readUInt32LE(start + 4);
    const length = 8 + size + (size % 2); // chunks are padded to even lengths
    if (start + 8 + size > file.length) return { format: 'webp', manifests, fault: CUT_SHORT };
    if (file.toString('latin1', start, start + 4) === 'C2PA') {
      manifests.push(inOnePart(file.subarray(start + 8, start + 8 + size), { start, length }));
    }
    start = Math.min(start + length, file.length);
  }
  return { format: 'webp', manifests, fault: TOO_MANY_PARTS };
}

function inOnePart(jumbf: Buffer, range: Range, fault?: string): ManifestPlace {
  return { jumbf, ...range, parts: [range], boxInstance: undefined, fault };
}

const APP11 = 0xeb;
const START_OF_SCAN = 0xda;
const END_OF_IMAGE = 0xd9;
/** "JP", box instance, sequence number: in front of the box's bytes in each segment. */
const JPEG_XT_BYTES = 8;
/** Length and type of the box: repeated in each segment after the first. */
const BOX_HEADER_BYTES = 8;
const NOT_WHOLE = 'its segments do not add up to its length';
const OUT_OF_ORDER = 'its segments are not in order';
const TORN_APART = 'something lies between its segments';

interface JpegBox {
  readonly instance: number;
  readonly parts: Range[];
  readonly bytes: Buffer[];
  fault: string | undefined;
}

function walkJpeg(file: Buffer): PictureParts {
  const boxes: JpegBox[] = [];
  const latest = new Map<number, JpegBox>();
  let start = 2;
  let fault: string | undefined = TOO_MANY_PARTS;
  for (let count = 0; count < MAX_PARTS; count += 1) {
    while (file[start] === 0xff && file[start + 1] === 0xff) start += 1; // fill bytes
    const marker = file[start + 1];
    if (marker === START_OF_SCAN || marker === END_OF_IMAGE || file[start] !== 0xff) {
      fault = undefined; // behind it come pixels, in which no manifest lies
      break;
    }
    const length = start + 4 > file.length ? Number.POSITIVE_INFINITY : 2 + file.readUInt16BE(start + 2);
    if (start + length > file.length) {
      fault = CUT_SHORT;
      break;
    }
    if (marker === APP11) takeSegment(file, { start, length }, boxes, latest);
    start += Math.max(length, 4);
  }
  const manifests = boxes.map(placeOf).filter(({ jumbf }) => isManifestStore(jumbf));
  return { format: 'jpeg', manifests, fault };
}

function takeSegment(file: Buffer, part: Range, boxes: JpegBox[], latest: Map<number, JpegBox>): void {
  const segment = file.subarray(part.start + 4, part.start + part.length);
  const isBox =
    segment.length >= JPEG_XT_BYTES + BOX_HEADER_BYTES &&
    segment.toString('latin1', 0, 2) === 'JP' &&
    segment.toString('latin1', 12, 16) === 'jumb';
  if (!isBox) return;
  const instance = segment.readUInt16BE(2);
  const sequence = segment.readUInt32BE(4);
  const box = latest.get(instance);
  if (box === undefined || sequence === 1) {
    const fault = sequence === 1 ? undefined : OUT_OF_ORDER;
    const started: JpegBox = { instance, parts: [part], bytes: [segment.subarray(JPEG_XT_BYTES)], fault };
    boxes.push(started);
    latest.set(instance, started);
    return;
  }
  const header = segment.subarray(JPEG_XT_BYTES, JPEG_XT_BYTES + BOX_HEADER_BYTES);
  const isNext = sequence === box.parts.length + 1;
  if (!isNext || !box.bytes[0]?.subarray(0, BOX_HEADER_BYTES).equals(header)) box.fault ??= OUT_OF_ORDER;
  if (endOf(box.parts.at(-1) ?? part) !== part.start) box.fault ??= TORN_APART;
  box.parts.push(part);
  box.bytes.push(segment.subarray(JPEG_XT_BYTES + BOX_HEADER_BYTES));
}

function placeOf({ instance, parts, bytes, fault }: JpegBox): ManifestPlace & { readonly jumbf: Buffer } {
  const jumbf = Buffer.concat(bytes);
  const isWhole = jumbf.length === jumbf.readUInt32BE(0);
  const start = parts[0]?.start ?? 0;
  const length = endOf(parts.at(-1) ?? { start, length: 0 }) - start;
  return {
    jumbf,
    start,
    length,
    parts,
    boxInstance: instance,
    fault: fault ?? (isWhole ? undefined : NOT_WHOLE),
  };
}

function endOf({ start, length }: Range): number {
  return start + length;
}

/** A JUMBF superbox (ISO/IEC 19566-5) whose description box has the type of a C2PA manifest store. */
function isManifestStore(jumbf: Buffer): boolean {
  return jumbf.toString('latin1', 4, 8) === 'jumb' && jumbf.toString('latin1', 12, 20) === 'jumdc2pa';
}
