/**
 * One streamed answer as an async iterator: pulls bytes, parses server-sent events, and has an interpreter say what each
 * means and whether the provider finished properly. Each item is given as soon as its bytes are here; nothing is timed or batched.
 */
import { createParser, type EventSourceMessage, type EventSourceParser } from 'eventsource-parser';
import { ROOMLESS_BYTES, type StreamExchange } from '../http-exchange.ts';
import { type AnswerRoom, ProviderError } from '../provider.ts';
import { TransportError } from '../transport-error.ts';
import { eventError, isObject, statusError } from './errors.ts';
import { hasContentType, parseObject } from './response.ts';

/** What the events of one kind of stream mean. */
export interface EventInterpreter<Item> {
  /** The event's JSON object, which is no error; `undefined` for one that says nothing to us. */
  take(event: Readonly<Record<string, unknown>>): Item | undefined;
  /** Nothing more is wanted: the rest of the stream is not waited for. */
  readonly isComplete: boolean;
  /** Throws when the stream may not end here: by `[DONE]`, by its end, or cut off below us. */
  checkEnd(by: 'done' | 'end' | 'cut'): void;
}

export interface EventStreamOptions<Item> {
  /** Sends the request; called at the first `next()`. */
  readonly open: () => StreamExchange;
  readonly interpreter: EventInterpreter<Item>;
  /** Of one event; the parser holds no more than this and one read. */
  readonly maxEventCharacters: number;
  /** For one event at a time: entered before more than its beginning is read, left when the next is asked for. */
  readonly room?: AnswerRoom | undefined;
  readonly credential: string | undefined;
  readonly signal: AbortSignal;
}

/** A hand-written iterator, not a generator: `return()` must also end a `next()` that is waiting for the provider. */
export class EventStream<Item> implements AsyncIterableIterator<Item> {
  readonly #options: EventStreamOptions<Item>;
  readonly #decoder = new TextDecoder();
  readonly #events: EventSourceMessage[] = [];
  readonly #parser: EventSourceParser;
  #isEventTooLong = false;
  #exchange: StreamExchange | undefined;
  #isCut = false;
  #isOver = false;
  /** Of the event that has begun and is not whole. */
  #eventBytes = 0;
  #isInRoom = false;

  constructor(options: EventStreamOptions<Item>) {
    this.#options = options;
    this.#parser = createParser({
      onEvent: (event) => this.#events.push(event),
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded') this.#isEventTooLong = true;
      },
      maxBufferSize: options.maxEventCharacters,
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Item, undefined>> {
    if (this.#isOver) return { done: true, value: undefined };
    const { interpreter, maxEventCharacters } = this.#options;
    this.#leaveRoom();
    try {
      // Also between chunks that are already here: an aborted call ends now, not when its buffer is empty.
      this.#options.signal.throwIfAborted();
      const exchange = this.#exchange ?? (await this.#open());
      for (;;) {
        if (interpreter.isComplete) {
          exchange.release();
          return this.#finish();
        }
        const event = this.#events.shift();
        if (event === undefined) {
          // Events that came whole before the oversized one are given first. No answer needs one: it is the provider's fault.
          if (this.#isEventTooLong)
            throw new ProviderError(
              'invalid_response',
              `One event is over ${maxEventCharacters} characters.`,
            );
          if (await this.#readMore(exchange)) continue;
          interpreter.checkEnd(this.#isCut ? 'cut' : 'end');
          return this.#finish();
        }
        if (event.data.trim() === '[DONE]') {
          interpreter.checkEnd('done');
          exchange.release();
          return this.#finish();
        }
        const item = interpreter.take(objectOf(event));
        if (item !== undefined) return { done: false, value: item };
        this.#leaveRoom();
      }
    } catch (error) {
      // After `return()` the wait ends with the abort that `return()` made.
      if (this.#isOver) return this.#finish();
      this.#isOver = true;
      this.#leaveRoom();
      this.#exchange?.abort(error);
      throw error;
    }
  }

  return(): Promise<IteratorResult<Item, undefined>> {
    const result = this.#finish();
    this.#exchange?.abort(new Error('The reader stopped.'));
    return Promise.resolve(result);
  }

  #finish(): IteratorResult<Item, undefined> {
    this.#isOver = true;
    this.#leaveRoom();
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
    const { room, maxEventCharacters } = this.#options;
    if (room !== undefined && !this.#isInRoom && this.#eventBytes > ROOMLESS_BYTES) {
      this.#isInRoom = true;
      await exchange.enter(room.enter(maxEventCharacters));
    }
    let piece: Buffer | undefined;
    try {
      piece = await exchange.read();
    } catch (error) {
      if (!(error instanceof TransportError) || error.isTimeout) throw error;
      // Cut below us. Nothing is lost when everything had finished; otherwise a caller has seen part of an answer.
      this.#isCut = true;
    }
    if (piece === undefined) return false;
    this.#eventBytes += piece.length;
    this.#parser.feed(this.#decoder.decode(piece, { stream: true }));
    if (this.#events.length > 0) {
      this.#eventBytes = 0;
      if (this.#isInRoom) exchange.arrived();
    }
    return true;
  }

  #leaveRoom(): void {
    if (!this.#isInRoom) return;
    this.#isInRoom = false;
    this.#options.room?.leave();
  }
}

function objectOf(event: EventSourceMessage): Record<string, unknown> {
  const object = parseObject(event.data);
  if (event.event === 'error' || isObject(object.error)) throw eventError(object.error ?? object);
  return object;
}
