/** Pictures made by hand, good and hostile: PNG chunk by chunk, without a library that would refuse to make the hostile ones. */
import { Readable } from 'node:stream';
import { crc32, deflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');

export function pngChunk(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, checksum]);
}

export interface PngChanges {
  readonly rgb?: readonly [number, number, number];
  /** Rows whose pixels are there; the size in the header stays. */
  readonly rows?: number;
  readonly isInterlaced?: boolean;
  /** Between the header and the pixels. */
  readonly before?: readonly Buffer[];
  /** Between the pixels and the end. */
  readonly behind?: readonly Buffer[];
}

const RGB = 2;
const RGBA = 6;

/** One colour, 8 bits a channel, without alpha. */
export function makePng(width: number, height: number, changes: PngChanges = {}): Buffer {
  const row = Buffer.concat([
    Buffer.from([0]),
    Buffer.alloc(width * 3, Buffer.from(changes.rgb ?? [0, 0, 0])),
  ]);
  const rows = Buffer.alloc(row.length * (changes.rows ?? height), row);
  return pngOf(width, height, RGB, rows, changes);
}

/** Black, and transparent within the rectangle. */
export function makeMask(
  width: number,
  height: number,
  hole: { readonly left: number; readonly top: number; readonly width: number; readonly height: number },
): Buffer {
  const rows = Buffer.alloc((1 + width * 4) * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const isHole =
        x >= hole.left && x < hole.left + hole.width && y >= hole.top && y < hole.top + hole.height;
      rows[y * (1 + width * 4) + 1 + x * 4 + 3] = isHole ? 0 : 255;
    }
  }
  return pngOf(width, height, RGBA, rows, {});
}

function pngOf(width: number, height: number, colour: number, rows: Buffer, changes: PngChanges): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  header[9] = colour;
  header[12] = changes.isInterlaced === true ? 1 : 0;
  return Buffer.concat([
    SIGNATURE,
    pngChunk('IHDR', header),
    ...(changes.before ?? []),
    pngChunk('IDAT', deflateSync(rows, { level: 1 })),
    ...(changes.behind ?? []),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

/** A ZIP file of no files; its comment may say that it ends later. */
export function makeZip(commentBytes = 0): Buffer {
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(commentBytes, 20);
  return end;
}

/** As a provider is given a picture of the caller's; `bytes` for the test to compare with. */
export function inputOf(
  bytes: Buffer,
  contentType: string,
): { bytes: Buffer; contentType: string; byteLength: number; open: () => Promise<Readable> } {
  return {
    bytes,
    contentType,
    byteLength: bytes.length,
    open: () => Promise.resolve(Readable.from([bytes], { objectMode: false })),
  };
}
