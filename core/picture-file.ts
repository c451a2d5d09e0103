/**
 * What a PNG, JPEG or WebP file is from its bytes alone: type, size, and that the file ends where the picture ends. It
 * decodes no pixel (core/pictures.ts does); it finds what decoders overlook, such as another file behind or within the picture.
 */

export type PictureFormat = 'png' | 'jpeg' | 'webp';

export type PictureProblem =
  | 'empty'
  /** Not a PNG, JPEG or WebP. */
  | 'unsupported_format'
  /** Truncated, or broken otherwise. */
  | 'damaged'
  /** More pixels, or a longer side, than allowed. */
  | 'too_large'
  /** Far more bytes than its pixels can need: it carries something else. */
  | 'too_heavy'
  | 'animated'
  /** Bytes behind the picture, or a file that is something else as well. */
  | 'polyglot';

export interface PictureFile {
  readonly format: PictureFormat;
  /** As stored, before any orientation in its metadata. */
  readonly width: number;
  readonly height: number;
  /** Its decoder must keep all of it in memory: interlaced, progressive, or WebP. */
  readonly isHeldWhole: boolean;
}

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const JPEG_START = Buffer.from('ffd8ff', 'hex');
/** Of a progressive JPEG, each of which costs a pass over all its pixels; encoders make about ten. */
const MAX_JPEG_SCANS = 64;
/** Of a file: twice what the most precise pixels take uncompressed, and a megabyte for profiles, texts and manifests. */
const MAX_BYTES_A_PIXEL = 16;
const MAX_BYTES_BESIDE = 1024 * 1024;
/** PDF readers look for their mark this far into a file. */
const PDF_MARK_BYTES = 1024;
/** ZIP readers look for the end of the directory among the last bytes: 22 and a comment. */
const ZIP_TAIL_BYTES = 22 + 0xffff;

export function readPictureFile(bytes: Buffer): PictureFile | PictureProblem {
  if (bytes.length === 0) return 'empty';
  const found = readByFormat(bytes);
  if (typeof found === 'string') return found;
  if (isOtherFileToo(bytes)) return 'polyglot';
  return bytes.length > found.width * found.height * MAX_BYTES_A_PIXEL + MAX_BYTES_BESIDE
    ? 'too_heavy'
    : found;
}

function readByFormat(bytes: Buffer): PictureFile | PictureProblem {
  if (startsWith(bytes, PNG_SIGNATURE)) return readPng(bytes);
  if (startsWith(bytes, JPEG_START)) return readJpegFile(bytes);
  if (typeAt(bytes, 0) === 'RIFF' && typeAt(bytes, 8) === 'WEBP') return readWebp(bytes);
  return 'unsupported_format';
}

/** PNG specification, 5: a signature, then chunks of length, type, data, checksum, from IHDR to IEND. */
function readPng(bytes: Buffer): PictureFile | PictureProblem {
  let offset = PNG_SIGNATURE.length;
  let header: PictureFile | undefined;
  let hasData = false;
  while (offset + 12 <= bytes.length) {
    const length = bytes.readUInt32BE(offset);
    const type = typeAt(bytes, offset + 4);
    const data = offset + 8;
    offset = data + length + 4;
    if (offset > bytes.length || !/^[A-Za-z]{4}$/.test(type)) return 'damaged';
    if ((header === undefined) !== (type === 'IHDR')) return 'damaged';
    if (type === 'IHDR') {
      if (length !== 13) return 'damaged';
      header = {
        format: 'png',
        width: bytes.readUInt32BE(data),
        height: bytes.readUInt32BE(data + 4),
        isHeldWhole: bytes[data + 12] !== 0,
      };
    }
    if (type === 'acTL') return 'animated';
    if (type === 'IDAT') hasData = true;
    if (type !== 'IEND') continue;
    if (header === undefined || !hasData || length !== 0) return 'damaged';
    return offset === bytes.length ? header : 'polyglot';
  }
  return 'damaged';
}

/** Cameras put further JPEG pictures behind the first (CIPA DC-007, announced by an `MPF` segment): nothing else may follow. */
function readJpegFile(bytes: Buffer): PictureFile | PictureProblem {
  const first = readJpeg(bytes, 0);
  if (typeof first === 'string') return first;
  let { end } = first;
  while (first.announcesMore && startsWith(bytes.subarray(end), JPEG_START)) {
    const further = readJpeg(bytes, end);
    if (typeof further === 'string') return 'polyglot';
    end = further.end;
  }
  return end === bytes.length ? first.file : 'polyglot';
}

/** ITU-T T.81, annex B: markers with segments, scans of entropy-coded bytes, up to the marker of the end. */
function readJpeg(
  bytes: Buffer,
  start: number,
): { file: PictureFile; end: number; announcesMore: boolean } | PictureProblem {
  let offset = start + 2;
  let file: PictureFile | undefined;
  let announcesMore = false;
  let scans = 0;
  while (offset + 1 < bytes.length) {
    if (bytes[offset] !== 0xff) return 'damaged';
    const marker = bytes[offset + 1] ?? 0;
    if (marker === 0xff) {
      offset += 1; // a fill byte
      continue;
    }
    offset += 2;
    if (marker === 0xd9)
      return file === undefined || scans === 0 ? 'damaged' : { file, end: offset, announcesMore };
    if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) continue;
    if (marker === 0 || marker === 0xd8 || offset + 2 > bytes.length) return 'damaged';
    const length = bytes.readUInt16BE(offset);
    if (length < 2 || offset + length > bytes.length) return 'damaged';
    if (isFrame(marker)) {
      if (file !== undefined || length < 8) return 'damaged';
      file = {
        format: 'jpeg',
        height: bytes.readUInt16BE(offset + 3),
        width: bytes.readUInt16BE(offset + 5),
        isHeldWhole: marker !== 0xc0 && marker !== 0xc1,
      };
    }
    if (marker === 0xe2 && bytes.toString('latin1', offset + 2, offset + 6) === 'MPF\0') announcesMore = true;
    offset += length;
    if (marker !== 0xda) continue;
    scans += 1;
    if (scans > MAX_JPEG_SCANS) return 'damaged';
    offset = endOfScan(bytes, offset);
  }
  return 'damaged';
}

/** SOF0 to SOF15, without the tables and the extension that stand among them. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

/** Where the next marker begins that is neither a stuffed byte nor a restart. */
function endOfScan(bytes: Buffer, start: number): number {
  let offset = start;
  for (;;) {
    offset = bytes.indexOf(0xff, offset);
    if (offset === -1) return bytes.length;
    const next = bytes[offset + 1];
    if (next === 0 || (next !== undefined && next >= 0xd0 && next <= 0xd7)) offset += 2;
    else return offset;
  }
}

/** RFC 9649: a RIFF file of chunks; the first says which of three kinds it is, and has the size. */
function readWebp(bytes: Buffer): PictureFile | PictureProblem {
  if (bytes.length < 12 + 8 + 10) return 'damaged';
  const end = 8 + bytes.readUInt32LE(4);
  if (end > bytes.length) return 'damaged';
  if (end < bytes.length) return 'polyglot';
  const size = webpSize(bytes);
  if (size === undefined) return 'damaged';
  let offset = 12;
  let hasData = false;
  while (offset + 8 <= end) {
    const type = typeAt(bytes, offset);
    if (type === 'ANIM' || type === 'ANMF') return 'animated';
    if (type === 'VP8 ' || type === 'VP8L') hasData = true;
    const length = bytes.readUInt32LE(offset + 4);
    offset += 8 + length + (length % 2);
  }
  if (offset !== end || !hasData) return 'damaged';
  return { format: 'webp', ...size, isHeldWhole: true };
}

function webpSize(bytes: Buffer): { width: number; height: number } | undefined {
  const data = 12 + 8;
  switch (typeAt(bytes, 12)) {
    case 'VP8X':
      return { width: bytes.readUIntLE(data + 4, 3) + 1, height: bytes.readUIntLE(data + 7, 3) + 1 };
    case 'VP8 ':
      return {
        width: bytes.readUInt16LE(data + 6) & 0x3fff,
        height: bytes.readUInt16LE(data + 8) & 0x3fff,
      };
    case 'VP8L': {
      const packed = bytes.readUInt32LE(data + 1);
      return { width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 };
    }
    default:
      return undefined;
  }
}

/** Whether a reader of ZIP or PDF files would take it for one, in whatever part of the picture they are hidden. */
function isOtherFileToo(bytes: Buffer): boolean {
  if (bytes.subarray(0, PDF_MARK_BYTES).includes('%PDF-')) return true;
  const tail = bytes.subarray(Math.max(0, bytes.length - ZIP_TAIL_BYTES));
  for (let at = tail.indexOf('PK\x05\x06', 0, 'latin1'); at !== -1; ) {
    // A real end of a directory says how long the comment behind it is, and that ends with the file.
    if (at + 22 <= tail.length && at + 22 + tail.readUInt16LE(at + 20) === tail.length) return true;
    at = tail.indexOf('PK\x05\x06', at + 1, 'latin1');
  }
  return false;
}

function typeAt(bytes: Buffer, offset: number): string {
  return bytes.toString('latin1', offset, offset + 4);
}

function startsWith(bytes: Buffer, start: Buffer): boolean {
  return bytes.length >= start.length && bytes.compare(start, 0, start.length, 0, start.length) === 0;
}
