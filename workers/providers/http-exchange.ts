/**
 * One HTTP exchange as undici's dispatcher drives it: taken whole, or read piece by piece with back-pressure. It ends
 * exactly once: by the answer's end, a failure, a limit or an abort.
 */
import type { Dispatcher } from 'undici';
import { type AnswerRoom, ProviderError } from './provider.ts';
import { TransportError } from './transport-error.ts';

/** undici keeps the headers and idle timeouts by coarse timers: they end up to a second late. */
export interface HttpLimits {
  readonly connectTimeoutMs: number;
  /**
   * From the request being written to the last response header. A whole answer is often computed before its headers, and a request
   * may take a day (core/config.ts): so calls end by their own signal, which knows the request's deadline.
   */
  readonly headersTimeoutMs: number;
  /** Between two reads of a body; does not run while the reader itself holds the stream back. */
  readonly idleTimeoutMs: number;
  /** Of one response body, whole or streamed. */
  readonly maxResponseBytes: number;
  /** Of the body of an answer that is not 2xx; the rest is left unread and the connection closed. */
  readonly maxErrorBytes: number;
  /** The same in time: the status has said what there is to know. */
  readonly errorBodyMs: number;
  /** Connections to one provider; above what a worker runs at once, so that a bug and not load meets it. */
  readonly maxConnections: number;
  /** For what still comes when the reader has all it wants; then the connection is closed. */
  readonly drainMs: number;
  readonly keepAliveMs: number;
  /** What calls under way may still take once the client is closed, where its owner says nothing else. */
  readonly closeGraceMs: number;
  /** For a body, or an event of a stream, from the moment it has room in memory: others wait for that. */
  readonly roomTimeoutMs: number;
}

export const HTTP_LIMITS: HttpLimits = {
  connectTimeoutMs: 5_000,
  headersTimeoutMs: 86_400_000,
  idleTimeoutMs: 120_000,
  maxResponseBytes: 32 * 1024 * 1024,
  maxErrorBytes: 64 * 1024,
  errorBodyMs: 2_000,
  maxConnections: 4_096,
  drainMs: 1_000,
  keepAliveMs: 30_000,
  closeGraceMs: 10_000,
  roomTimeoutMs: 60_000,
};

/** Of a body, or of an event of a stream, that need no room: so much may lie here while its provider takes its time. */
export const ROOMLESS_BYTES = 64 * 1024;

/** Bytes of a stream held for the reader before the socket is paused. */
const STREAM_BUFFER_BYTES = 64 * 1024;
/** Bytes allowed after the reader has what it wanted, so that the connection can be used again. */
const DRAIN_BYTES = 64 * 1024;
const REST_NOT_WANTED = 'The rest of the answer is not wanted.';

/** What differs from call to call. */
export interface ExchangeOptions {
  /** Instead of the client's limit. */
  readonly maxResponseBytes?: number | undefined;
  /** Entered before more than the beginning of a good answer is taken; not of a stream, whose reader does it. */
  readonly room?: AnswerRoom | undefined;
}

type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

export class HttpAnswer {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** The body; of an error status, what came of it within the limits. */
  readonly bytes: Buffer;

  constructor(status: number, headers: ResponseHeaders, bytes: Buffer) {
    this.status = status;
    this.headers = headers;
    this.bytes = bytes;
  }

  /** The body as UTF-8. */
  get text(): string {
    return this.bytes.toString('utf8');
  }
}

/** What both kinds of exchange share: abort, the size limit, and ending exactly once. */
export abstract class Exchange implements Dispatcher.DispatchHandler {
  status = 0;
  headers: ResponseHeaders = {};
  isOver = false;
  protected readonly limits: HttpLimits;
  protected readonly maxResponseBytes: number;
  protected bytesReceived = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #roomTimer: NodeJS.Timeout | undefined;
  readonly #signal: AbortSignal;
  readonly #onAbort: () => void;

  constructor(signal: AbortSignal, limits: HttpLimits, options: ExchangeOptions) {
    this.limits = limits;
    this.maxResponseBytes = options.maxResponseBytes ?? limits.maxResponseBytes;
    this.#signal = signal;
    this.#onAbort = () => this.abort(signal.reason);
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  protected abstract fail(error: unknown, isLocal: boolean): void;

  /** Ends the exchange with `reason` and closes the connection, also while it is still being made. */
  abort(reason: unknown): void {
    if (this.isOver) return;
    this.over();
    this.fail(reason, true);
    this.cut('The call was ended on this side.');
  }

  /** Closes the connection. */
  protected cut(why: string): void {
    this.#controller?.abort(new Error(why));
  }

  protected over(): void {
    this.isOver = true;
    clearTimeout(this.#roomTimer);
    this.#signal.removeEventListener('abort', this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.isOver) controller.abort(new Error('The call ended before it was sent.'));
    else this.#controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: ResponseHeaders,
  ): void {
    this.status = status;
    this.headers = headers;
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.isOver) return;
    this.over();
    this.fail(new TransportError(error), false);
  }

  protected get isSuccess(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  /** Whatever becomes of its body. */
  protected get isError(): boolean {
    return this.status >= 300;
  }

  protected pause(): void {
    this.#controller?.pause();
  }

  protected resume(): void {
    this.#controller?.resume();
  }

  /** What is in a room that others wait for has so much time from here on, until it has arrived. */
  protected hurry(): void {
    const { roomTimeoutMs } = this.limits;
    const message = `The answer took longer than ${roomTimeoutMs} ms to arrive.`;
    this.#roomTimer = setTimeout(() => this.abort(new ProviderError('unavailable', message)), roomTimeoutMs);
  }

  /** Of a stream: the event that was hurried. */
  arrived(): void {
    clearTimeout(this.#roomTimer);
  }

  protected tooLarge(): ProviderError {
    return new ProviderError('invalid_response', `The answer is over ${this.maxResponseBytes} bytes.`, {
      status: this.status,
      isOurLimit: true,
    });
  }
}

export class WholeExchange extends Exchange {
  readonly answer: Promise<HttpAnswer>;
  readonly #resolve: (answer: HttpAnswer) => void;
  readonly #reject: (error: unknown) => void;
  readonly #room: AnswerRoom | undefined;
  #isInRoom = false;
  #parts: Buffer[] = [];
  #errorTimer: NodeJS.Timeout | undefined;

  /** The room is left when the exchange fails. */
  constructor(signal: AbortSignal, limits: HttpLimits, options: ExchangeOptions) {
    super(signal, limits, options);
    this.#room = options.room;
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
    this.answer = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    if (signal.aborted) this.abort(signal.reason);
  }

  override onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: ResponseHeaders,
  ): void {
    super.onResponseStart(controller, status, headers);
    if (this.isError) this.#errorTimer = setTimeout(() => this.#endError(), this.limits.errorBodyMs);
  }

  onResponseData(_controller: Dispatcher.DispatchController, part: Buffer): void {
    if (this.isOver) return;
    this.bytesReceived += part.length;
    this.#parts.push(part);
    if (this.isSuccess) {
      if (this.bytesReceived > this.maxResponseBytes) this.abort(this.tooLarge());
      else if (this.bytesReceived > ROOMLESS_BYTES && this.#room !== undefined && !this.#isInRoom)
        this.#enter(this.#room);
    } else if (this.bytesReceived > this.limits.maxErrorBytes) this.#endError();
  }

  override onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (this.isError) this.onResponseEnd();
    else super.onResponseError(controller, error);
  }

  onResponseEnd(): void {
    if (this.isOver) return;
    this.over();
    const limit = this.isSuccess ? undefined : this.limits.maxErrorBytes;
    const bytes = joined(this.#parts, limit);
    this.#parts = [];
    this.#resolve(new HttpAnswer(this.status, this.headers, bytes));
  }

  protected override fail(error: unknown): void {
    this.#parts = [];
    if (this.#isInRoom) this.#room?.leave();
    this.#reject(error);
  }

  protected override over(): void {
    super.over();
    clearTimeout(this.#errorTimer);
  }

  #endError(): void {
    this.onResponseEnd();
    this.cut(REST_NOT_WANTED);
  }

  #enter(room: AnswerRoom): void {
    this.#isInRoom = true;
    this.pause();
    const announced = Number(this.headers['content-length'] ?? Number.POSITIVE_INFINITY);
    room.enter(Math.min(announced, this.maxResponseBytes)).then(
      () => {
        if (this.isOver) return;
        this.hurry();
        this.resume();
      },
      (error: unknown) => this.abort(error),
    );
  }
}

/** A response read piece by piece. One reader, one `read()` at a time. */
export class StreamExchange extends Exchange {
  /** Resolves when the headers are there, whatever the status. */
  readonly started: Promise<void>;
  readonly #resolveStarted: () => void;
  readonly #rejectStarted: (error: unknown) => void;
  readonly #pieces: Buffer[] = [];
  #bufferedBytes = 0;
  #isPaused = false;
  #hasEnded = false;
  #drainTimer: NodeJS.Timeout | undefined;
  #failure: { readonly error: unknown; readonly isLocal: boolean } | undefined;
  #reader: PromiseWithResolvers<Buffer | undefined> | undefined;
  #entering: PromiseWithResolvers<never> | undefined;

  constructor(signal: AbortSignal, limits: HttpLimits, options: ExchangeOptions) {
    super(signal, limits, options);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.started = promise;
    this.#resolveStarted = resolve;
    this.#rejectStarted = reject;
    // The failure also reaches whoever reads; a rejection nobody awaits must not end the process.
    promise.catch(() => undefined);
    if (signal.aborted) this.abort(signal.reason);
  }

  /** The next bytes; `undefined` at the proper end of the body. What came before a failure is given first, unless we aborted. */
  read(): Promise<Buffer | undefined> {
    const piece = this.#pieces.shift();
    if (piece !== undefined) {
      this.#bufferedBytes -= piece.length;
      if (this.#isPaused && this.#bufferedBytes === 0) {
        this.#isPaused = false;
        this.resume();
      }
      return Promise.resolve(piece);
    }
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    if (this.#hasEnded) return Promise.resolve(undefined);
    this.#reader = Promise.withResolvers();
    return this.#reader.promise;
  }

  /** Waits for room for what is read next, which is then hurried. Rejects when this side ends the exchange meanwhile. */
  async enter(entering: Promise<void>): Promise<void> {
    if (this.#failure?.isLocal === true) throw this.#failure.error;
    this.#entering = Promise.withResolvers();
    await Promise.race([entering, this.#entering.promise]);
    this.#entering = undefined;
    if (!this.isOver) this.hurry();
  }

  /** Reads the rest as text, up to the limits of errors; for an answer that is not the stream asked for. */
  async readErrorText(): Promise<string> {
    const parts: Buffer[] = [];
    let bytes = 0;
    const late = new Error('The rest of the error body is not waited for.');
    const timer = setTimeout(() => this.abort(late), this.limits.errorBodyMs);
    try {
      for (let part = await this.read(); part !== undefined; part = await this.read()) {
        parts.push(part);
        bytes += part.length;
        if (bytes > this.limits.maxErrorBytes) break;
      }
    } catch (error) {
      const isCut = this.isError && error instanceof TransportError;
      if (error !== late && !isCut) throw error;
    } finally {
      clearTimeout(timer);
    }
    this.abort(undefined);
    return joined(parts, this.limits.maxErrorBytes).toString('utf8');
  }

  /** The reader has all it wants: lets a short rest of the body pass, so that the connection is kept. */
  release(): void {
    if (this.isOver) return;
    this.over();
    this.#drainTimer = setTimeout(() => this.cut(REST_NOT_WANTED), this.limits.drainMs);
    this.#pieces.length = 0;
    this.bytesReceived = 0;
    if (this.#isPaused) this.resume();
  }

  override onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: ResponseHeaders,
  ): void {
    if (status < 200) return;
    super.onResponseStart(controller, status, headers);
    this.#resolveStarted();
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.bytesReceived += piece.length;
    if (this.#drainTimer !== undefined) {
      if (this.bytesReceived > DRAIN_BYTES) this.cut(REST_NOT_WANTED);
      return;
    }
    if (this.isOver) return;
    if (this.bytesReceived > this.maxResponseBytes) {
      this.abort(this.tooLarge());
      return;
    }
    if (this.#reader !== undefined) {
      const reader = this.#reader;
      this.#reader = undefined;
      reader.resolve(piece);
      return;
    }
    this.#pieces.push(piece);
    this.#bufferedBytes += piece.length;
    if (this.#bufferedBytes > STREAM_BUFFER_BYTES) {
      this.#isPaused = true;
      this.pause();
    }
  }

  override onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    clearTimeout(this.#drainTimer);
    super.onResponseError(controller, error);
  }

  onResponseEnd(): void {
    clearTimeout(this.#drainTimer);
    if (this.isOver) return;
    this.over();
    this.#hasEnded = true;
    this.#reader?.resolve(undefined);
  }

  protected override fail(error: unknown, isLocal: boolean): void {
    if (isLocal) this.#pieces.length = 0;
    this.#failure = { error, isLocal };
    this.#rejectStarted(error);
    this.#reader?.reject(error);
    if (isLocal) this.#entering?.reject(error);
  }
}

function joined(parts: readonly Buffer[], limit: number | undefined): Buffer {
  const whole = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  return limit === undefined ? whole : whole.subarray(0, limit);
}
