/**
 * Files in a folder, which ingress and workers share. A file is written under a hidden name, forced to disk and then renamed, so
 * that whoever looks sees all of it or nothing, whatever is killed and when.
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, stat, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { requireKey } from './keys.ts';
import { destroySource, Measure, measureBuffer, watchSource } from './measure.ts';
import {
  AssetMissing,
  type AssetStore,
  AssetTooLarge,
  type OpenOptions,
  type PutOptions,
  type PutResult,
} from './store.ts';

/** Keys never begin with a dot: what is being written cannot be asked for. */
const UNFINISHED = '.unfinished';
/** What was left unfinished for longer than this, no process that is alive is writing. */
const UNFINISHED_AGE_MS = 60 * 60 * 1000;
const DELETED_AT_ONCE = 16;

export class FolderStore implements AssetStore {
  readonly #root: string;

  /** `root`: made when the first file comes. */
  constructor(root: string) {
    this.#root = path.resolve(root);
  }

  async put(key: string, body: Buffer | Readable, options: PutOptions): Promise<PutResult> {
    watchSource(body);
    const unfinished = this.#unfinishedPath();
    try {
      const target = this.#pathOf(key);
      options.signal?.throwIfAborted();
      await mkdir(path.dirname(unfinished), { recursive: true });
      const result = await write(unfinished, key, body, options);
      const firstMade = await mkdir(path.dirname(target), { recursive: true });
      options.signal?.throwIfAborted();
      await rename(unfinished, target);
      await syncFolders(path.dirname(target), firstMade);
      return result;
    } catch (error) {
      destroySource(body);
      await removeFile(unfinished);
      throw options.signal?.aborted === true ? options.signal.reason : error;
    }
  }

  async open(key: string, { start, end, signal }: OpenOptions = {}): Promise<Readable> {
    const file = await this.#openFile(key);
    try {
      signal?.throwIfAborted();
      return file.createReadStream({
        ...(start === undefined ? {} : { start }),
        ...(end === undefined ? {} : { end }),
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async read(
    key: string,
    options: { readonly maxBytes: number; readonly signal?: AbortSignal },
  ): Promise<Buffer> {
    const file = await this.#openFile(key);
    try {
      if ((await file.stat()).size > options.maxBytes) throw new AssetTooLarge(key, options.maxBytes);
      return await file.readFile(options.signal === undefined ? {} : { signal: options.signal });
    } finally {
      await file.close();
    }
  }

  async delete(keys: readonly string[]): Promise<void> {
    const paths = keys.map((key) => this.#pathOf(key));
    for (let start = 0; start < paths.length; start += DELETED_AT_ONCE) {
      await Promise.all(paths.slice(start, start + DELETED_AT_ONCE).map(removeFile));
    }
  }

  async check(): Promise<void> {
    const unfinished = this.#unfinishedPath();
    await mkdir(path.dirname(unfinished), { recursive: true });
    await writeFile(unfinished, 'can be written to');
    await unlink(unfinished);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** What processes that were killed left half written. Run at start. */
  async removeLeftovers(): Promise<void> {
    const folder = path.join(this.#root, UNFINISHED);
    const names = await readdir(folder).catch(ignoreMissing<string[]>([]));
    for (const name of names) {
      const file = path.join(folder, name);
      const { mtimeMs } = await stat(file).catch(ignoreMissing({ mtimeMs: Number.POSITIVE_INFINITY }));
      if (mtimeMs < Date.now() - UNFINISHED_AGE_MS) await removeFile(file);
    }
  }

  #pathOf(key: string): string {
    requireKey(key);
    return path.join(this.#root, ...key.split('/'));
  }

  #unfinishedPath(): string {
    return path.join(this.#root, UNFINISHED, randomUUID());
  }

  async #openFile(key: string): Promise<FileHandle> {
    const file = await open(this.#pathOf(key)).catch((error: unknown) => {
      throw isMissing(error) ? new AssetMissing(key, error) : error;
    });
    if ((await file.stat()).isFile()) return file;
    await file.close();
    throw new AssetMissing(key);
  }
}

/** Written and on disk. */
async function write(
  file: string,
  key: string,
  body: Buffer | Readable,
  { maxBytes, signal }: PutOptions,
): Promise<PutResult> {
  const sink = () => createWriteStream(file, { flags: 'wx', flush: true });
  const abortable = signal === undefined ? {} : { signal };
  if (Buffer.isBuffer(body)) {
    const result = measureBuffer(key, body, maxBytes);
    await pipeline(Readable.from([body], { objectMode: false }), sink(), abortable);
    return result;
  }
  const measure = new Measure(key, maxBytes);
  await pipeline(body, measure, sink(), abortable);
  return measure.result();
}

/** The names too must outlive the machine: of the file in its folder, of folders made for it in theirs. */
async function syncFolders(folder: string, firstMade: string | undefined): Promise<void> {
  const last = firstMade === undefined ? folder : path.dirname(firstMade);
  for (let current = folder; ; current = path.dirname(current)) {
    const handle = await open(current);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (current === last) return;
  }
}

async function removeFile(file: string): Promise<void> {
  await unlink(file).catch(ignoreMissing(undefined));
}

function ignoreMissing<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (isMissing(error)) return instead;
    throw error;
  };
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}
