/** Pictures in JSON: base64, alone or as a data URL. */
import { ServiceError } from '../../../core/errors.ts';

const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+;base64,/;
/** Four for three bytes, and line breaks. */
const MOST_CHARACTERS_A_BYTE = 1.5;
/** What is not of the alphabet, but for the padding at the end. */
const PADDING = /={1,2}$/;

/** Throws `invalid_parameter` for what is no base64, or too long. */
export function bytesOfBase64(text: string, param: string, maxBytes: number): Buffer {
  const prefix = DATA_URL.exec(text.slice(0, 100))?.[0] ?? '';
  let encoded = prefix === '' ? text : text.slice(prefix.length);
  if (encoded.length > maxBytes * MOST_CHARACTERS_A_BYTE)
    throw new ServiceError('invalid_parameter', { param, max_bytes: maxBytes });
  // command-line tools wrap it
  if (/\s/.test(encoded)) encoded = encoded.replace(/\s+/g, '');
  const characters = encoded.replace(PADDING, '').length;
  const bytes = Buffer.from(encoded, 'base64');
  // Node leaves out what is no base64: then there are fewer bytes than there were characters for
  if (bytes.length === 0 || bytes.length !== Math.floor((characters * 3) / 4) || characters % 4 === 1) {
    throw new ServiceError('invalid_parameter', { param });
  }
  if (bytes.length > maxBytes) throw new ServiceError('invalid_parameter', { param, max_bytes: maxBytes });
  return bytes;
}
