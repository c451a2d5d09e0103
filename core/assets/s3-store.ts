/**
 * Files in a bucket of any service that speaks S3. Loads the AWS SDK, 15 MB of modules: imported only where it is configured
 * (make-store.ts). Credentials come from where the SDK looks for them (environment, profile, the machine's role).
 */
import { addAbortSignal, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { DeleteObjectCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
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

export interface S3Address {
  readonly bucket: string;
  /** Before every key, with a slash at its end unless empty. */
  readonly prefix: string;
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly isPathStyle: boolean;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** Until the answer begins; a part of an upload is at most PART_BYTES, a file in memory a few tens of MB. */
const REQUEST_TIMEOUT_MS = 120_000;
/** Without a byte in either direction: longer than a slow reader is waited for (SLOW_READER_SECONDS). */
const SILENCE_TIMEOUT_MS = 300_000;
const MAX_ATTEMPTS = 3;
/** Slow readers keep theirs for long. */
const MAX_SOCKETS = 500;
/** Of a stream whose length nobody knows: this much, twice, is in memory. 10,000 parts make 50 GB. */
const PART_BYTES = 5 * 1024 * 1024;
const PARTS_AT_ONCE = 2;
const DELETED_AT_ONCE = 16;
const CHECK_KEY = 'check/can-be-written-to';

export class S3Store implements AssetStore {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;

  private constructor(client: S3Client, { bucket, prefix }: S3Address) {
    this.#client = client;
    this.#bucket = bucket;
    this.#prefix = prefix;
  }

  /** Throws where no region is to be found. */
  static async make(address: S3Address): Promise<S3Store> {
    // services of one's own take any region, but the signature wants one
    const region = address.region ?? (address.endpoint === undefined ? undefined : 'us-east-1');
    const client = new S3Client({
      ...(region === undefined ? {} : { region }),
      ...(address.endpoint === undefined ? {} : { endpoint: address.endpoint }),
      forcePathStyle: address.isPathStyle,
      maxAttempts: MAX_ATTEMPTS,
      // checksums in trailers are not known to every service; what we put is hashed by us
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: CONNECT_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        throwOnRequestTimeout: true,
        socketTimeout: SILENCE_TIMEOUT_MS,
        httpAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
        httpsAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
      },
    });
    // biome-ignore lint/nursery/useAwaitThenable: it answers with a promise
    await client.config.region();
    return new S3Store(client, address);
  }

  async put(key: string, body: Buffer | Readable, options: PutOptions): Promise<PutResult> {
    watchSource(body);
    const object = { ...this.#object(key), ContentType: options.contentType };
    const { signal } = options;
    try {
      signal?.throwIfAborted();
      const result = Buffer.isBuffer(body)
        ? await this.#putBuffer(key, object, body, options)
        : await this.#putStream(key, object, body, options);
      signal?.throwIfAborted();
      return result;
    } catch (error) {
      destroySource(body);
      // the service may have had all of it already when we hung up
      if (signal?.aborted === true) await this.delete([key]);
      throw signal?.aborted === true ? signal.reason : error;
    }
  }

  async #putBuffer(
    key: string,
    object: S3Object,
    body: Buffer,
    { maxBytes, signal }: PutOptions,
  ): Promise<PutResult> {
    const result = measureBuffer(key, body, maxBytes);
    await this.#client.send(
      new PutObjectCommand({ ...object, Body: body, ContentLength: body.length }),
      abortable(signal),
    );
    return result;
  }

  /** In parts; the object is there once the last one is. Not stopped by `Upload.abort`, which does not wait for what is under way. */
  async #putStream(
    key: string,
    object: S3Object,
    body: Readable,
    { maxBytes, signal }: PutOptions,
  ): Promise<PutResult> {
    const measure = new Measure(key, maxBytes);
    const feeding = pipeline(body, measure, signal === undefined ? {} : { signal });
    feeding.catch(() => {}); // the upload fails with it, and takes its parts back
    const upload = new Upload({
      client: this.#client,
      params: { ...object, Body: measure },
      partSize: PART_BYTES,
      queueSize: PARTS_AT_ONCE,
    });
    try {
      await upload.done();
    } catch (error) {
      measure.destroy();
      // why the source ended is the reason, whatever the service said to it
      if (measure.errored === null) throw error;
    }
    await feeding;
    return measure.result();
  }

  async open(key: string, { start, end, signal }: OpenOptions = {}): Promise<Readable> {
    const range =
      start === undefined && end === undefined ? {} : { Range: `bytes=${start ?? 0}-${end ?? ''}` };
    const { Body: body, ContentRange: given } = await this.#get(key, range, signal);
    if (range.Range !== undefined && !isWithin(given, start ?? 0, end)) {
      body.destroy();
      throw new Error(`the store answered ${range.Range} of ${key} with ${given ?? 'everything'}`);
    }
    return signal === undefined ? body : addAbortSignal(signal, body);
  }

  async read(
    key: string,
    options: { readonly maxBytes: number; readonly signal?: AbortSignal },
  ): Promise<Buffer> {
    const { Body: body, ContentLength: length } = await this.#get(key, {}, options.signal);
    if ((length ?? 0) > options.maxBytes) {
      body.destroy();
      throw new AssetTooLarge(key, options.maxBytes);
    }
    if (options.signal !== undefined) addAbortSignal(options.signal, body);
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const part of body as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > options.maxBytes) throw new AssetTooLarge(key, options.maxBytes);
      parts.push(part);
    }
    return Buffer.concat(parts, bytes);
  }

  async #get(
    key: string,
    range: { readonly Range?: string },
    signal: AbortSignal | undefined,
  ): Promise<Answer> {
    try {
      const { Body, ContentLength, ContentRange } = await this.#client.send(
        new GetObjectCommand({ ...this.#object(key), ...range }),
        abortable(signal),
      );
      if (!(Body instanceof Readable)) throw new Error(`the store answered without a body for ${key}`);
      return { Body, ContentLength, ContentRange };
    } catch (error) {
      throw (error as Error).name === 'NoSuchKey' ? new AssetMissing(key, error) : error;
    }
  }

  /** One by one: not every service knows how to delete many at once. */
  async delete(keys: readonly string[]): Promise<void> {
    const objects = keys.map((key) => this.#object(key));
    for (let start = 0; start < objects.length; start += DELETED_AT_ONCE) {
      const some = objects.slice(start, start + DELETED_AT_ONCE);
      await Promise.all(some.map((object) => this.#client.send(new DeleteObjectCommand(object))));
    }
  }

  async check(): Promise<void> {
    await this.#client.send(new PutObjectCommand({ ...this.#object(CHECK_KEY), Body: 'yes' }));
  }

  close(): Promise<void> {
    this.#client.destroy();
    return Promise.resolve();
  }

  #object(key: string): S3Object {
    requireKey(key);
    return { Bucket: this.#bucket, Key: this.#prefix + key };
  }
}

interface Answer {
  readonly Body: Readable;
  readonly ContentLength: number | undefined;
  readonly ContentRange: string | undefined;
}

/** Content-Range (RFC 9110, section 14.4): a service that gives more than was asked for would spoil the caller's response. */
function isWithin(given: string | undefined, start: number, end: number | undefined): boolean {
  const [, first, last] = /^bytes (\d+)-(\d+)\//.exec(given ?? '') ?? [];
  return Number(first) === start && Number(last) <= (end ?? Number.POSITIVE_INFINITY);
}

interface S3Object {
  readonly Bucket: string;
  readonly Key: string;
}

function abortable(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
  return signal === undefined ? {} : { abortSignal: signal };
}
