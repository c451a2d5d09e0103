/**
 * One streamed answer of audio as an async iterator: each piece as soon as its bytes are here, pausing the socket while nobody
 * reads. It ends normally only at the body's proper end, and only when what came begins as the format asked for.
 */
import type { AudioFormat } from '../../core/audio/formats.ts';
import type { StreamExchange } from './http-exchange.ts';
import { ProviderError } from './provider.ts';
import { TransportError } from './transport-error.ts';

export interface AudioStreamOptions {
  /** Sends the request; called at the first `next()`. */
  readonly open: () => StreamExchange;
  readonly format: AudioFormat;
  /** What an answer that is not 200, or no audio, means; `text` is its body, perhaps cut. */
  readonly failure: (exchange: StreamExchange, text: string) => ProviderError;
  readonly signal: AbortSignal;
}

/** Streaming a hundred characters a second for an hour, uncompressed: not held in memory. */
export const MAX_SPEECH_BYTES = 256 * 1024 * 1024;

/** Enough to tell the formats apart. */
const SIGNATURE_BYTES = 4;
/** Samples have no signature: any bytes but those of the others. */
const SIGNATURES: Readonly<Record<Exclude<AudioFormat, 'pcm'>, RegExp>> = {
  mp3: /^(ID3|\xff[\xe2-\xff])/,
  wav: /^(RIFF|RF64)/,
  opus: /^OggS/,
  flac: /^fLaC/,
  aac: /^\xff[\xf0\xf1\xf8\xf9]/,
};

/** A hand-written iterator, not a generator: `return()` must also end a `next()` that is waiting for the provider. */
export class AudioStream implements AsyncIterableIterator<Buffer> {
  readonly #options: AudioStreamOptions;
  #exchange: StreamExchange | undefined;
  #hasBegun = false;
  #isOver = false;

  constructor(options: AudioStreamOptions) {
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Buffer, undefined>> {
    if (this.#isOver) return { done: true, value: undefined };
    try {
      this.#options.signal.throwIfAborted();
      const exchange = this.#exchange ?? (await this.#open());
      const piece = this.#hasBegun ? await this.#read(exchange) : await this.#first(exchange);
      if (piece !== undefined) return { done: false, value: piece };
      this.#isOver = true;
      return { done: true, value: undefined };
    } catch (error) {
      // After `return()` the wait ends with the abort that `return()` made.
      if (this.#isOver) return { done: true, value: undefined };
      this.#isOver = true;
      this.#exchange?.abort(error);
      throw error;
    }
  }

  return(): Promise<IteratorResult<Buffer, undefined>> {
    this.#isOver = true;
    this.#exchange?.abort(new Error('The reader stopped.'));
    return Promise.resolve({ done: true, value: undefined });
  }

  async #open(): Promise<StreamExchange> {
    const exchange = this.#options.open();
    this.#exchange = exchange;
    await exchange.started;
    if (exchange.status !== 200 || !isAudio(exchange.headers['content-type']))
      throw this.#options.failure(exchange, await exchange.readErrorText());
    return exchange;
  }

  async #first(exchange: StreamExchange): Promise<Buffer> {
    let begin: Buffer = Buffer.alloc(0);
    while (begin.length < SIGNATURE_BYTES) {
      // Cut before anything came: another try may do better.
      const piece = await exchange.read();
      if (piece === undefined) break;
      begin = Buffer.concat([begin, piece]);
    }
    const { format } = this.#options;
    const signature = begin.toString('latin1', 0, SIGNATURE_BYTES);
    if (begin.length === 0) throw new ProviderError('invalid_response', 'The answer has no audio.');
    if (!hasSignature(signature, format))
      throw new ProviderError('invalid_response', `The answer is not in the format asked for (${format}).`);
    this.#hasBegun = true;
    return begin;
  }

  async #read(exchange: StreamExchange): Promise<Buffer | undefined> {
    try {
      return await exchange.read();
    } catch (error) {
      if (!(error instanceof TransportError) || error.isTimeout) throw error;
      throw new ProviderError('invalid_response', 'The audio was cut.', { cause: error });
    }
  }
}

/** Servers that name no type of audio call it bytes, or nothing. */
function isAudio(type: unknown): boolean {
  return (
    type === undefined ||
    (typeof type === 'string' && /^\s*(audio\/|application\/(octet-stream|ogg))/i.test(type))
  );
}

function hasSignature(signature: string, format: AudioFormat): boolean {
  if (format !== 'pcm') return SIGNATURES[format].test(signature);
  // The two that are words; single bytes of the others can be samples.
  return !/^(RIFF|OggS|fLaC|ID3)/.test(signature);
}
