/**
 * JSON with files of the store in it as base64. A file is read as the caller takes it and is never whole in memory; what stands
 * around the files is text. The length is known before the first byte, so that a caller sees an answer that was cut short.
 */
import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { type AssetName, assetKey } from '../core/assets/keys.ts';
import type { AssetStore } from '../core/assets/store.ts';

export interface EmbeddedFile extends AssetName {
  readonly bytes: number;
}

export interface Base64Json {
  /** Of the text in UTF-8. */
  readonly bytes: number;
  /** Rejects with AssetMissing where a file is gone, or when one is not of the length it should have. */
  chunks(store: AssetStore, signal: AbortSignal): AsyncGenerator<string>;
}

/** `write` makes the value, calling `embed` where a file's base64 is to stand. */
export function base64Json(write: (embed: (file: EmbeddedFile) => string) => unknown): Base64Json {
  const mark = randomUUID(); // in no prompt and no address
  const files: EmbeddedFile[] = [];
  const value = write((file) => {
    files.push(file);
    return mark;
  });
  const texts = JSON.stringify(value).split(mark);
  return {
    bytes:
      texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) +
      files.reduce((sum, file) => sum + base64Length(file.bytes), 0),
    async *chunks(store, signal) {
      for (const [index, text] of texts.entries()) {
        const file = files[index];
        // opened before the text that leads up to it is given: where the first is missing, nothing was
        const parts = file === undefined ? undefined : await store.open(assetKey(file), { signal });
        yield text;
        if (file !== undefined && parts !== undefined) yield* base64Of(parts, file);
      }
    },
  };
}

function base64Length(bytes: number): number {
  return 4 * Math.ceil(bytes / 3);
}

/** Base64 takes three bytes at a time: what is over waits for the next part. */
async function* base64Of(parts: Readable, file: EmbeddedFile): AsyncGenerator<string> {
  let rest: Buffer = Buffer.alloc(0);
  let bytes = 0;
  for await (const part of parts as AsyncIterable<Buffer>) {
    bytes += part.length;
    const whole = rest.length === 0 ? part : Buffer.concat([rest, part]);
    const end = whole.length - (whole.length % 3);
    yield whole.toString('base64', 0, end);
    rest = whole.subarray(end);
  }
  if (bytes !== file.bytes)
    throw new Error(`the file of ${file.id} has ${bytes} bytes instead of ${file.bytes}`);
  yield rest.toString('base64');
}
