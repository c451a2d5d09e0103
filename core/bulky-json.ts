/**
 * JSON with files in it as base64, read without making strings of them: the text is taken apart where long strings stand, what
 * is left is parsed as usual, and each long string is decoded where it lies, in the memory it came in.
 */
import { randomUUID } from 'node:crypto';

/** Strings up to this are parsed with the rest; a prompt of the convention is shorter, however it is escaped. */
const LONG_BYTES = 512 * 1024;
/** More than any text with a meaning has here, so that text made of quotes only is not worth sending. */
const MAX_QUOTES = 200_000;
/** Decoded at a time: a multiple of 4. */
const STEP_CHARACTERS = 48 * 1024;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const PADDING = 0x3d;
const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+;base64,/;
const DATA_URL_CHARACTERS = 100;
const ESCAPES: Readonly<Record<string, string>> = { '/': '/', n: '', r: '', t: '' };

export interface BulkyJson {
  readonly value: unknown;
  /** Whether this string of `value` stands for a long one. */
  isLong(text: string): boolean;
  /**
   * The bytes of a base64 string of `value`, alone or as a data URL; undefined where it is none. Of a long one they lie in the
   * memory that was parsed, and can be had once.
   */
  bytesOf(text: string): Buffer | undefined;
}

/** Throws SyntaxError. `text` is overwritten where long strings are decoded. */
export function parseBulkyJson(text: Buffer): BulkyJson {
  const mark = randomUUID();
  const long = new Map<string, Buffer>();
  const rest: string[] = [];
  let from = 0;
  for (const { start, end } of longStrings(text)) {
    const name = `${mark} ${long.size}`;
    long.set(name, text.subarray(start, end));
    rest.push(text.toString('utf8', from, start), name);
    from = end;
  }
  rest.push(text.toString('utf8', from));
  return {
    value: JSON.parse(rest.join('')),
    isLong: (name) => long.has(name),
    bytesOf(name) {
      const bytes = long.get(name);
      if (bytes === undefined) return bytesOfBase64(name);
      long.delete(name);
      const plain = unescaped(bytes);
      return plain === undefined ? undefined : decoded(plain);
    },
  };
}

/** Of base64, alone or as a data URL; undefined where it is none. */
export function bytesOfBase64(text: string): Buffer | undefined {
  return decoded(Buffer.from(text));
}

/** What stands between the quotes of strings over the limit. Of what is no JSON anything may come: the parser refuses it. */
function* longStrings(text: Buffer): Generator<{ start: number; end: number }> {
  let quotes = 0;
  for (let open = text.indexOf(QUOTE); open !== -1; ) {
    let close = open;
    do {
      quotes += 1;
      if (quotes > MAX_QUOTES) throw new SyntaxError('too many quotes');
      close = text.indexOf(QUOTE, close + 1);
      if (close === -1) return;
    } while (isEscaped(text, open + 1, close));
    if (close - open > LONG_BYTES) yield { start: open + 1, end: close };
    open = text.indexOf(QUOTE, close + 1);
  }
}

/** Whether the byte at `at` of a string that begins at `start` has an odd number of backslashes before it. */
export function isEscaped(text: Buffer, start: number, at: number): boolean {
  let first = at;
  while (first > start && text[first - 1] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** In place: three bytes are written where four characters were read. */
function decoded(text: Buffer): Buffer | undefined {
  const prefix = DATA_URL.exec(text.toString('latin1', 0, DATA_URL_CHARACTERS))?.[0].length ?? 0;
  const encoded = withoutSpace(text.subarray(prefix));
  let characters = encoded.length;
  for (let padding = 0; padding < 2 && encoded[characters - 1] === PADDING; padding += 1) characters -= 1;
  let bytes = 0;
  for (let from = 0; from < characters; from += STEP_CHARACTERS) {
    const step = encoded.toString('latin1', from, Math.min(from + STEP_CHARACTERS, characters));
    bytes += encoded.write(step, bytes, 'base64');
  }
  // Node leaves out what is no base64: then there are fewer bytes than there were characters for
  const isWhole = bytes > 0 && bytes === Math.floor((characters * 3) / 4) && characters % 4 !== 1;
  return isWhole ? encoded.subarray(0, bytes) : undefined;
}

/** Some languages write `/` and `+` as escapes. Undefined where one is of no base64. */
function unescaped(text: Buffer): Buffer | undefined {
  let from = text.indexOf(BACKSLASH);
  if (from === -1) return text;
  let to = from;
  while (from < text.length) {
    const byte = text[from] ?? 0;
    if (byte !== BACKSLASH) {
      text[to] = byte;
      from += 1;
      to += 1;
      continue;
    }
    const letter = String.fromCharCode(text[from + 1] ?? 0);
    const code =
      letter === 'u' ? Number.parseInt(text.toString('latin1', from + 2, from + 6), 16) : undefined;
    const meant = code === undefined ? ESCAPES[letter] : String.fromCharCode(code);
    if (meant === undefined || (code !== undefined && !(code < 0x80))) return undefined;
    to += text.write(meant, to, 'latin1');
    from += code === undefined ? 2 : 6;
  }
  return text.subarray(0, to);
}

/** Command-line tools wrap it. */
function withoutSpace(text: Buffer): Buffer {
  if (text.indexOf(0x0a) === -1 && text.indexOf(0x20) === -1 && text.indexOf(0x0d) === -1) return text;
  let to = 0;
  for (const byte of text) {
    if (byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)) continue;
    text[to] = byte;
    to += 1;
  }
  return text.subarray(0, to);
}
