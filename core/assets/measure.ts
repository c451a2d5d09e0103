/** What stores do with what they are given: count and hash it, stop it at the limit, let go of it when it cannot be put. */
import { createHash } from 'node:crypto';
import { type Readable, Transform, type TransformCallback } from 'node:stream';
import { AssetTooLarge, type PutResult } from './store.ts';

export class Measure extends Transform {
  readonly #key: string;
  readonly #maxBytes: number;
  readonly #hash = createHash('sha256');
  #bytes = 0;

  constructor(key: string, maxBytes: number) {
    super();
    this.#key = key;
    this.#maxBytes = maxBytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) {
      done(new AssetTooLarge(this.#key, this.#maxBytes));
      return;
    }
    this.#hash.update(chunk);
    done(null, chunk);
  }

  /** Of everything; once. */
  result(): PutResult {
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex') };
  }
}

/** Throws AssetTooLarge. */
export function measureBuffer(key: string, body: Buffer, maxBytes: number): PutResult {
  if (body.length > maxBytes) throw new AssetTooLarge(key, maxBytes);
  return { bytes: body.length, sha256: createHash('sha256').update(body).digest('hex') };
}

/** A source may fail before anybody reads it: whoever reads it then is told, and nothing else happens. */
export function watchSource(body: Buffer | Readable): void {
  if (!Buffer.isBuffer(body)) body.on('error', () => {});
}

/** Whoever feeds it is to stop. */
export function destroySource(body: Buffer | Readable): void {
  if (!Buffer.isBuffer(body)) body.destroy();
}
