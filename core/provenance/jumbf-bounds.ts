/**
 * Measures a JUMBF structure (ISO/IEC 19566-5) before it is parsed. The parser copies each superbox whole, recurses into it and
 * takes some lengths on trust: a hostile file could make it use gigabytes, or read on where a box has ended. What passes here cannot.
 */

/** Manifests with thumbnails and the manifests of their ingredients stay far below. */
const MAX_BYTES = 10 * 1024 * 1024;
/** A store, a manifest, its assertions, one of them: four deep. */
const MAX_DEPTH = 6;
const MAX_BOXES = 5000;
/** CBOR and JSON become objects, many times their size. */
const MAX_PARSED_BYTES = 1024 * 1024;

const HEADER_BYTES = 8;
const UUID_BYTES = 16;

export class JumbfFault extends Error {
  readonly isTooLarge: boolean;

  constructor(message: string, isTooLarge = false) {
    super(message);
    this.isTooLarge = isTooLarge;
  }
}

interface Measure {
  boxes: number;
  parsedBytes: number;
}

/** Throws a JumbfFault when the bytes are not one whole superbox with sound lengths inside, or too much of one. */
export function checkJumbf(bytes: Uint8Array): void {
  if (bytes.length > MAX_BYTES) throw new JumbfFault('it is too large to be checked', true);
  const jumbf = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isOneBox = jumbf.length >= HEADER_BYTES && jumbf.readUInt32BE(0) === jumbf.length;
  if (!isOneBox || jumbf.toString('latin1', 4, 8) !== 'jumb') throw new JumbfFault('it is not one whole box');
  walk(jumbf, 0, { boxes: 0, parsedBytes: 0 });
}

function walk(boxes: Buffer, depth: number, measure: Measure): void {
  let start = 0;
  while (start < boxes.length) {
    if (start + HEADER_BYTES > boxes.length) throw new JumbfFault('a box is cut short');
    const length = boxes.readUInt32BE(start);
    if (length < HEADER_BYTES || start + length > boxes.length) {
      throw new JumbfFault('a box is longer or shorter than it can be');
    }
    measure.boxes += 1;
    if (measure.boxes > MAX_BOXES) throw new JumbfFault('it has too many boxes to be checked', true);
    const type = boxes.toString('latin1', start + 4, start + 8);
    checkBox(type, boxes.subarray(start + HEADER_BYTES, start + length), depth, measure);
    start += length;
  }
}

function checkBox(type: string, content: Buffer, depth: number, measure: Measure): void {
  switch (type) {
    case 'jumb':
      if (depth === MAX_DEPTH)
        throw new JumbfFault('its boxes lie too deep in each other to be checked', true);
      walk(content, depth + 1, measure);
      return;
    case 'jumd':
      checkDescription(content, depth, measure);
      return;
    case 'cbor':
    case 'json':
      measure.parsedBytes += content.length;
      if (measure.parsedBytes > MAX_PARSED_BYTES)
        throw new JumbfFault('it holds too much to be checked', true);
      return;
    case 'bfdb': {
      const afterType = afterText(content, 1);
      const hasName = ((content[0] ?? 0) & 1) === 1;
      expectEnd(hasName ? afterText(content, afterType) : afterType, content);
      return;
    }
    case 'uuid':
      if (content.length < UUID_BYTES) throw new JumbfFault('a box is shorter than it can be');
      return;
    default: // read, or skipped, by its length alone
  }
}

/** Description box: type, toggles, and what they announce: label, id, hash, private boxes. */
function checkDescription(content: Buffer, depth: number, measure: Measure): void {
  const toggles = content[UUID_BYTES] ?? 0;
  let at = UUID_BYTES + 1;
  if ((toggles & 2) !== 0) at = afterText(content, at);
  if ((toggles & 4) !== 0) at += 4;
  if ((toggles & 8) !== 0) at += 32;
  if ((toggles & 16) === 0) {
    expectEnd(at, content);
    return;
  }
  if (at > content.length) throw new JumbfFault('a description is cut short');
  if (depth === MAX_DEPTH) throw new JumbfFault('its boxes lie too deep in each other to be checked', true);
  walk(content.subarray(at), depth + 1, measure);
}

/** Behind the text that begins at `start` and ends with NUL. */
function afterText(content: Buffer, start: number): number {
  const end = content.indexOf(0, start);
  if (end < 0) throw new JumbfFault('a text has no end');
  return end + 1;
}

function expectEnd(at: number, content: Buffer): void {
  if (at !== content.length) throw new JumbfFault('a box does not end where its content does');
}
