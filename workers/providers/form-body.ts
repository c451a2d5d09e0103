/**
 * A multipart/form-data body (RFC 7578) that is written while it is sent: files are opened when their turn comes and are never
 * whole in memory, as they are in a FormData. Its length is known before, since not every server takes a body without one.
 */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';

export interface FormPart {
  readonly name: string;
  readonly content: string | FormPartFile;
}

export interface FormPartFile {
  readonly fileName: string;
  readonly contentType: string;
  readonly byteLength: number;
  open(): Promise<Readable>;
}

export interface FormBody {
  /** Name, value, name, value. */
  readonly headers: readonly string[];
  /** Fails when a file cannot be read, or has another length than was said. */
  open(): Readable;
}

/** Names, file names and content types are ours: nothing in them needs escaping. */
export function makeFormBody(parts: readonly FormPart[]): FormBody {
  const boundary = `form-${randomUUID()}`;
  const heads = parts.map(({ name, content }) => headOf(boundary, name, content));
  const end = `--${boundary}--\r\n`;
  const length = parts.reduce(
    (sum, { content }, index) =>
      sum + Buffer.byteLength(heads[index] ?? '') + lengthOf(content) + LINE_END.length,
    end.length,
  );

  async function* pieces(): AsyncGenerator<Buffer> {
    for (const [index, { content }] of parts.entries()) {
      yield Buffer.from(heads[index] ?? '');
      if (typeof content === 'string') yield Buffer.from(content);
      else yield* bytesOf(content);
      yield LINE_END;
    }
    yield Buffer.from(end);
  }

  return {
    headers: ['content-type', `multipart/form-data; boundary=${boundary}`, 'content-length', String(length)],
    open: () => Readable.from(pieces(), { objectMode: false }),
  };
}

const LINE_END = Buffer.from('\r\n');

function headOf(boundary: string, name: string, content: FormPart['content']): string {
  const start = `--${boundary}\r\ncontent-disposition: form-data; name="${name}"`;
  if (typeof content === 'string') return `${start}\r\n\r\n`;
  return `${start}; filename="${content.fileName}"\r\ncontent-type: ${content.contentType}\r\n\r\n`;
}

function lengthOf(content: FormPart['content']): number {
  return typeof content === 'string' ? Buffer.byteLength(content) : content.byteLength;
}

async function* bytesOf({ fileName, byteLength, open }: FormPartFile): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const part of (await open()) as AsyncIterable<Buffer>) {
    bytes += part.length;
    yield part;
  }
  if (bytes !== byteLength) throw new Error(`${fileName} has ${bytes} bytes instead of ${byteLength}`);
}
