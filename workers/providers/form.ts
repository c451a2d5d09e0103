/**
 * A multipart/form-data body (RFC 7578) as pieces to be sent one after the other: files as the bytes that they are. FormData would
 * copy each of them, and pictures have tens of megabytes.
 */
import { randomUUID } from 'node:crypto';

export interface FormFile {
  readonly field: string;
  /** Ours: printable ASCII without quotes, as `field` and `contentType` are. */
  readonly name: string;
  readonly contentType: string;
  readonly bytes: Buffer;
}

export interface FormBody {
  readonly contentType: string;
  readonly byteLength: number;
  readonly pieces: readonly Buffer[];
}

export function formBody(
  fields: readonly (readonly [name: string, value: string])[],
  files: readonly FormFile[],
): FormBody {
  const boundary = `form-${randomUUID()}`; // nobody who writes a field knows it
  const head = (disposition: string, type = ''): string =>
    `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n${type}\r\n`;
  const texts = fields.map(([name, value]) => `${head(`name="${name}"`)}${value}\r\n`).join('');
  const pieces = [
    Buffer.from(texts),
    ...files.flatMap(({ field, name, contentType, bytes }) => [
      Buffer.from(head(`name="${field}"; filename="${name}"`, `Content-Type: ${contentType}\r\n`)),
      bytes,
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ];
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    byteLength: pieces.reduce((sum, piece) => sum + piece.length, 0),
    pieces,
  };
}

/** Name, value, name, value. */
export function formHeaders({ contentType, byteLength }: FormBody): readonly string[] {
  return ['content-type', contentType, 'content-length', `${byteLength}`];
}
