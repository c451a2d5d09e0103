/**
 * What keeps the bytes of results and inputs: a folder (folder-store.ts) or an S3-compatible service (s3-store.ts). Whose a file
 * is, and for how long, stands in app.assets: a store knows keys and bytes alone.
 */
import type { Readable } from 'node:stream';

export interface PutOptions {
  readonly contentType: string;
  readonly maxBytes: number;
  readonly signal?: AbortSignal | undefined;
}

export interface PutResult {
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

export interface OpenOptions {
  /** First byte, from 0. */
  readonly start?: number | undefined;
  /** Last byte, included, as in HTTP. */
  readonly end?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface AssetStore {
  /**
   * Whole or not at all: nothing is visible under `key` before this resolves. Replaces what was there. Rejects with AssetTooLarge
   * past `maxBytes`, with the signal's reason on abort, and when `body` fails; then it leaves nothing of it (a file that it was to
   * replace may be gone too). A stream is read to its end or destroyed.
   */
  put(key: string, body: Buffer | Readable, options: PutOptions): Promise<PutResult>;
  /** Rejects with AssetMissing. The stream fails when the signal aborts; whoever does not read it to its end destroys it. */
  open(key: string, options?: OpenOptions): Promise<Readable>;
  /** Whole, for what is small. Rejects with AssetMissing, or AssetTooLarge past `maxBytes`. */
  read(key: string, options: { readonly maxBytes: number; readonly signal?: AbortSignal }): Promise<Buffer>;
  /** What is not there is no error. */
  delete(keys: readonly string[]): Promise<void>;
  /** Rejects when nothing can be written. */
  check(): Promise<void>;
  close(): Promise<void>;
}

export class AssetMissing extends Error {
  constructor(key: string, cause?: unknown) {
    super(`no file ${key}`, { cause });
    this.name = 'AssetMissing';
  }
}

export class AssetTooLarge extends Error {
  readonly maxBytes: number;

  constructor(key: string, maxBytes: number) {
    super(`the file ${key} is larger than ${maxBytes} bytes`);
    this.name = 'AssetTooLarge';
    this.maxBytes = maxBytes;
  }
}
