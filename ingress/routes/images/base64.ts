/** Pictures in JSON: base64, alone or as a data URL. */
import { bytesOfBase64 } from '../../../core/bulky-json.ts';
import { ServiceError } from '../../../core/errors.ts';

/** Throws `invalid_parameter` for what is no base64, or too long. */
export function requireBytes(bytes: Buffer | undefined, param: string, maxBytes: number): Buffer {
  if (bytes === undefined) throw new ServiceError('invalid_parameter', { param });
  if (bytes.length > maxBytes) throw new ServiceError('invalid_parameter', { param, max_bytes: maxBytes });
  return bytes;
}

export function requireBase64(text: string, param: string, maxBytes: number): Buffer {
  return requireBytes(bytesOfBase64(text), param, maxBytes);
}
