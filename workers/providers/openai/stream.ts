/**
 * One streamed chat answer as an async iterator: pulls bytes, parses server-sent events, checks chunks, and knows whether
 * the provider finished properly. Each chunk is given as soon as its bytes are here; nothing is timed or batched.
 */
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { StreamExchange } from '../http-exchange.ts';
import { type ChatChunk, ProviderError } from '../provider.ts';
import { TransportError } from '../transport-error.ts';
import { eventError, isObject, statusError } from './errors.ts';
import { hasContentType, parseObject, parseUsage } from './response.ts';

/** Characters of one event; the parser holds no more than this and one read. */
const MAX_EVENT_CHARACTERS = 1_000_000;
/** The convention's own limit for `n`. */
const MAX_CHOICES = 128;

export interface ChatStreamOptions {
  /** Sends the request; called at the first `next()`. */
  readonly open: () => StreamExchange;
  /** How many choices were asked for: without `[DONE]` all of them must have finished. */
  readonly choiceCount: number;
  readonly credential: string | undefined;
  readonly signal: AbortSignal;
}

/** A hand-written iterator, not a generator: `return()` must also end a `next()` that is waiting for the provider. */
export class ChatStream implements AsyncIterableIterator<ChatChunk> {
  readonly #options: ChatStreamOptions;
  readonly #decoder = new TextDecoder();
  readonly #events: EventSourceMessage[] = [];
  readonly #isFinishedByChoice = new Map<number, boolean>();
  readonly #parser = createParser({
    onEvent: (event) => this.#events.push(event),
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') this.#isEventTooLong = true;
    },
    maxBufferSize: MAX_EVENT_CHARACTERS,
  });
  #isEventTooLong = false;
  #exchange: StreamExchange | undefined;
  #isOver = false;

  constructor(options: ChatStreamOptions) {
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<ChatChunk, undefined>> {
    if (this.#isOver) return { done: true, value: undefined };
    try {
      // Also between chunks that are already here: an aborted call ends now, not when its buffer is empty.
      this.#options.signal.throwIfAborted();
      const exchange = this.#exchange ?? (await this.#open());
      for (;;) {
        const event = this.#events.shift();
        if (event === undefined) {
          // Events that came whole before the oversized one are given first.
          if (this.#isEventTooLong)
            throw new ProviderError(
              'invalid_response',
              `One event is over ${MAX_EVENT_CHARACTERS} characters.`,
              { isOurLimit: true },
            );
          if (await this.#readMore(exchange)) continue;
          this.#checkFinished(this.#options.choiceCount);
          return this.#finish();
        }
        if (event.data === '[DONE]') {
          this.#checkFinished(0);
          exchange.release();
          return this.#finish();
        }
        return { done: false, value: this.#chunkOf(event) };
      }
    } catch (error) {
      // After `return()` the wait ends with the abort that `return()` made.
      if (this.#isOver) return this.#finish();
      this.#isOver = true;
      this.#exchange?.abort(error);
      throw error;
    }
  }

  return(): Promise<IteratorResult<ChatChunk, undefined>> {
    const result = this.#finish();
    this.#exchange?.abort(new Error('The reader stopped.'));
    return Promise.resolve(result);
  }

  #finish(): IteratorResult<ChatChunk, undefined> {
    this.#isOver = true;
    return { done: true, value: undefined };
  }

  async #open(): Promise<StreamExchange> {
    const exchange = this.#options.open();
    this.#exchange = exchange;
    await exchange.started;
    if (exchange.status !== 200) {
      throw statusError(
        exchange.status,
        exchange.headers,
        await exchange.readErrorText(),
        this.#options.credential,
      );
    }
    if (!hasContentType(exchange.headers, 'text/event-stream')) {
      throw new ProviderError('invalid_response', 'The answer is not an event stream.', { status: 200 });
    }
    return exchange;
  }

  /** Feeds the parser with the next bytes; false at the end of the body. */
  async #readMore(exchange: StreamExchange): Promise<boolean> {
    let piece: Buffer | undefined;
    try {
      piece = await exchange.read();
    } catch (error) {
      if (!(error instanceof TransportError) || error.isTimeout) throw error;
      // Cut below us. Nothing is lost when every choice had finished; otherwise a caller has seen part of an answer.
      piece = undefined;
    }
    if (piece === undefined) return false;
    this.#parser.feed(this.#decoder.decode(piece, { stream: true }));
    return true;
  }

  #chunkOf(event: EventSourceMessage): ChatChunk {
    const chunk = parseObject(event.data);
    if (event.event === 'error' || isObject(chunk.error)) throw eventError(chunk.error ?? chunk);
    const choices = chunk.choices;
    if (!Array.isArray(choices)) throw new ProviderError('invalid_response', 'A chunk has no choices.');
    for (const choice of choices as unknown[]) this.#note(choice);
    return { chunk, usage: parseUsage(chunk.usage) };
  }

  #note(choice: unknown): void {
    if (!isObject(choice))
      throw new ProviderError('invalid_response', 'A choice of a chunk is not an object.');
    const index = choice.index;
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= MAX_CHOICES) {
      throw new ProviderError('invalid_response', 'A choice of a chunk has no index.');
    }
    if (typeof choice.finish_reason === 'string') this.#isFinishedByChoice.set(index as number, true);
    else if (!this.#isFinishedByChoice.has(index as number))
      this.#isFinishedByChoice.set(index as number, false);
  }

  #checkFinished(leastChoices: number): void {
    const states = [...this.#isFinishedByChoice.values()];
    if (states.length === 0 || states.length < leastChoices || states.includes(false)) {
      throw new ProviderError('invalid_response', 'The stream ended before the answer did.');
    }
  }
}
