/**
 * One run of a request in this process: how it is stopped, and how its stream reaches the caller at the caller's pace.
 */
import type { PaidJobPayload } from '../core/jobs.ts';
import type { Bus } from '../core/relay/bus.ts';
import { processChannel } from '../core/relay/frames.ts';

/**
 * - `client_gone`: nobody reads the answer any more
 * - `deadline`: the request took longer than it may
 * - `lost`: its hold was resolved by somebody else (cancelled, expired)
 * - `stopping`: this worker shuts down
 */
export type AbortCause = 'client_gone' | 'deadline' | 'lost' | 'stopping';

export class RunAborted extends Error {
  readonly abortCause: AbortCause;

  constructor(abortCause: AbortCause) {
    super(`the run was stopped: ${abortCause}`);
    this.name = 'RunAborted';
    this.abortCause = abortCause;
  }
}

export interface RunOptions {
  readonly payload: PaidJobPayload;
  readonly number: number;
  readonly workerId: string;
  readonly bus: Bus;
  readonly windowBytes: number;
  readonly slowReaderMs: number;
  /** The events are stored with the result; else they carry a file, which is stored by itself and read on from there. */
  readonly keepsEvents: boolean;
}

export class Run {
  readonly payload: PaidJobPayload;
  /** Which run of the request this is, from 1. */
  readonly number: number;
  readonly startedAt = new Date();
  /** Every event of the stream so far, where they are stored with the result, so that lost frames can be made good. */
  readonly events: string[] = [];
  /** Whether the database has been told that the request runs. */
  isMarked = false;
  /** Resolves when this run has ended, whichever way. */
  readonly over: Promise<void>;

  readonly #options: RunOptions;
  readonly #controller = new AbortController();
  readonly #deadline: NodeJS.Timeout;
  #eventCount = 0;
  #sentBytes = 0;
  #takenBytes = 0;
  #waitedMs = 0;
  #onTaken: (() => void) | undefined;
  #isDetached = false;
  #isOver!: () => void;

  constructor(options: RunOptions) {
    this.payload = options.payload;
    this.number = options.number;
    this.#options = options;
    this.over = new Promise((resolve) => {
      this.#isOver = resolve;
    });
    this.#deadline = setTimeout(
      () => this.abort('deadline'),
      Math.max(options.payload.deadlineAtMs - Date.now(), 0),
    );
  }

  get id(): string {
    return this.payload.id;
  }

  /** Events of the stream so far, sent or not. */
  get eventCount(): number {
    return this.#eventCount;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Why the run was stopped, if it was. */
  get abortCause(): AbortCause | undefined {
    const reason: unknown = this.signal.reason;
    return reason instanceof RunAborted ? reason.abortCause : undefined;
  }

  /** A relevant part of the time so far went by waiting for the reader. */
  get isHeldUpByReader(): boolean {
    const elapsedMs = Date.now() - this.startedAt.getTime();
    return this.#waitedMs > Math.min(RELEVANT_WAIT_MS, elapsedMs * RELEVANT_WAIT_SHARE);
  }

  abort(cause: AbortCause): void {
    if (!this.signal.aborted) this.#controller.abort(new RunAborted(cause));
    this.#onTaken?.();
  }

  /**
   * Sends one event of the stream; waits while the reader is too far behind. A reader that takes nothing for long is gone; one
   * that can read on from a file is not waited for much longer than it takes to tell it from a quick one.
   */
  async emit(event: string): Promise<void> {
    const { ingressId } = this.payload;
    const first = this.#eventCount;
    this.#eventCount += 1;
    if (this.#options.keepsEvents) this.events.push(event);
    if (ingressId === null || this.#isDetached) return;
    this.#options.bus.publish(processChannel(ingressId), {
      kind: 'events',
      id: this.id,
      workerId: this.#options.workerId,
      run: this.number,
      first,
      events: [event],
    });
    this.#sentBytes += Buffer.byteLength(event) + FRAMING_BYTES;
    if (this.#sentBytes - this.#takenBytes > this.#options.windowBytes) await this.#readerCatchesUp();
  }

  /** Nobody reads any more, and not by the caller's doing: the stream goes on and is kept for collection. */
  detach(): void {
    this.#isDetached = true;
    this.#onTaken?.();
  }

  /** The reader has taken this many bytes since the stream began. */
  taken(bytes: number): void {
    this.#takenBytes = Math.max(this.#takenBytes, bytes);
    this.#onTaken?.();
  }

  async #readerCatchesUp(): Promise<void> {
    const { bus, keepsEvents, slowReaderMs, windowBytes } = this.#options;
    const isFarBehind = (): boolean =>
      !this.signal.aborted && !this.#isDetached && this.#sentBytes - this.#takenBytes > windowBytes;
    const startedAt = performance.now();
    let lastTakenAt = startedAt;
    // without a carrier no acknowledgement can come: the stream goes on, and its reader finds it in the database
    while (isFarBehind() && bus.isConnected) {
      const before = this.#takenBytes;
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#onTaken = resolve;
        timer = setTimeout(resolve, Math.min(slowReaderMs, CARRIER_CHECK_MS));
      });
      clearTimeout(timer);
      this.#onTaken = undefined;
      if (!keepsEvents) {
        const waitedMs = this.#waitedMs + performance.now() - startedAt;
        if (waitedMs >= slowReaderMs * FILE_PATIENCE_SHARE) this.#isDetached = true;
        continue;
      }
      if (this.#takenBytes !== before) lastTakenAt = performance.now();
      else if (performance.now() - lastTakenAt >= slowReaderMs && isFarBehind()) this.abort('client_gone');
    }
    this.#waitedMs += performance.now() - startedAt;
  }

  end(): void {
    clearTimeout(this.#deadline);
    this.#isOver();
  }
}

/** Waiting for the reader for longer than this, or than this share of the time, makes a missed deadline the reader's doing. */
const RELEVANT_WAIT_MS = 5000;
const RELEVANT_WAIT_SHARE = 0.1;
/** Of a slow reader's time, in all: a file is made at its provider's pace, however slowly it is played. */
const FILE_PATIENCE_SHARE = 1 / 3;
/** While waiting for a reader: how often to see whether the carrier still stands. */
const CARRIER_CHECK_MS = 500;
/** "data: " and the blank line, as the ingress counts them. */
const FRAMING_BYTES = 8;
