/**
 * One request that somebody waits for: the frames of its worker put in order, what the database says where they have a hole, and
 * what is said to its worker.
 */
import { isErrorCode } from '../core/errors.ts';
import {
  ALL_WORKERS_CHANNEL,
  type EventsFrame,
  type FinishedFrame,
  type Frame,
  processChannel,
} from '../core/relay/frames.ts';
import type { FinishedRequest } from './data/requests.ts';

export interface Pending {
  readonly id: string;
  /** Resolves when the request is on the books. */
  readonly finished: Promise<FinishedFrame>;
  /** Takes the events that have arrived and not been taken; a stream's reader calls it whenever `onEvents` fired. */
  takeEvents(): string[];
  /** What was passed on is not how the stored answer begins: the caller's connection is cut, and it can collect the answer. */
  readonly isForked: boolean;
  /** A worker runs it, as far as is known here: its events came, or it was looked up after a silence. */
  readonly hasBegun: boolean;
  /** Called when events are there to take, or the request has finished. */
  onEvents: (() => void) | undefined;
  /** The reader took this many bytes since the stream began: the worker may send more. */
  acknowledge(bytes: number): void;
  /** The caller went away: the worker stops and settles. Said again until it has. */
  abort(): void;
  /** The caller went away, or was given the address to collect at: nobody reads the stream, and its worker waits for nobody. */
  leave(): void;
  /** Nobody waits any more. */
  forget(): void;
}

export class PendingRequest implements Pending {
  readonly id: string;
  readonly finished: Promise<FinishedFrame>;
  onEvents: (() => void) | undefined;
  lastHeardAt = Date.now();
  /** A hole was seen: only the database can tell the rest. */
  isBroken = false;
  /** Two runs of a stream cannot be joined: it is voided, unless one of them is on the books already. */
  isToBeVoided = false;
  isForked = false;
  hasBegun = false;
  #isAborted = false;
  #isLeft = false;
  #isForgotten = false;

  readonly #publish: (channel: string, frame: Frame) => void;
  readonly #forget: (id: string) => void;
  #resolve!: (frame: FinishedFrame) => void;
  #events: string[] = [];
  #received = 0;
  #fingerprint = 0;
  #takenBytes = 0;
  #run: number | undefined;
  #workerId: string | undefined;

  constructor(id: string, publish: (channel: string, frame: Frame) => void, forget: (id: string) => void) {
    this.id = id;
    this.#publish = publish;
    this.#forget = forget;
    this.finished = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  hear(frame: EventsFrame | FinishedFrame): void {
    this.lastHeardAt = Date.now();
    if (frame.kind === 'events') this.#hearEvents(frame);
    else this.#hearFinished(frame);
  }

  #hearEvents(frame: EventsFrame): void {
    if (this.#run !== undefined && !this.#isFromCurrentRun(frame)) {
      if (frame.run < this.#run) return; // a worker that was given up lives after all
      // the request is run again: what was passed on came from another run and cannot be taken back
      if (this.#received > 0) {
        this.isBroken = true;
        this.isToBeVoided = true;
        return;
      }
    }
    this.begin();
    this.#run = frame.run;
    this.#workerId = frame.workerId;
    if (this.#isLeft) {
      this.acknowledgeAgain();
      return;
    }
    if (this.isBroken || frame.first > this.#received) {
      this.isBroken = true;
      return;
    }
    this.#push(frame.events.slice(this.#received - frame.first));
  }

  #isFromCurrentRun(frame: EventsFrame | FinishedFrame): boolean {
    return frame.run === this.#run && frame.workerId === this.#workerId;
  }

  #hearFinished(frame: FinishedFrame): void {
    if (frame.state === 'succeeded') {
      const first = frame.eventCount - (frame.events?.length ?? 0);
      const isSameRun = this.#run === undefined || this.#isFromCurrentRun(frame);
      const isWhole = !this.isBroken && isSameRun && this.#received >= first;
      if (isWhole) this.#push((frame.events ?? []).slice(this.#received - first));
      // where there is a body too, it names the file that the reader has the rest of
      if (frame.body === undefined && (!isWhole || frame.eventCount === 0)) {
        this.isBroken = true;
        this.lastHeardAt = 0; // look it up at the next sweep
        return;
      }
      this.isForked = !isSameRun && this.#received > 0;
    }
    this.#end(frame);
  }

  begin(): void {
    this.hasBegun = true;
  }

  /** The database's word, which also holds what was lost on the way. */
  recover(request: FinishedRequest): void {
    const events = request.result?.kind === 'events' ? request.result.body.split('\n') : [];
    if (request.result?.kind === 'json') this.isForked = this.isToBeVoided;
    else if (request.state === 'succeeded') {
      this.isForked = fingerprintOf(events.slice(0, this.#received)) !== this.#fingerprint;
      if (!this.isForked) this.#push(events.slice(this.#received));
    }
    this.#end({
      kind: 'finished',
      id: request.id,
      run: 0,
      state: request.state,
      costAp: request.costAp,
      eventCount: events.length,
      ...(request.result?.kind === 'json' ? { body: request.result.body } : {}),
      ...(request.errorCode !== null && isErrorCode(request.errorCode)
        ? { errorCode: request.errorCode }
        : {}),
      ...(request.errorDetails === null ? {} : { errorDetails: request.errorDetails }),
    });
  }

  #push(events: readonly string[]): void {
    if (events.length === 0) return;
    this.#received += events.length;
    this.#fingerprint = fingerprintOf(events, this.#fingerprint);
    if (this.#isForgotten) return;
    for (const event of events) this.#events.push(event);
    this.onEvents?.();
  }

  #end(frame: FinishedFrame): void {
    this.#forget(this.id);
    this.#resolve(frame);
    this.onEvents?.();
  }

  takeEvents(): string[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  acknowledge(bytes: number): void {
    this.#takenBytes = bytes;
    if (this.#workerId !== undefined) {
      this.#publish(processChannel(this.#workerId), { kind: 'taken', id: this.id, bytes });
    }
  }

  /** An acknowledgement may have been lost; and what can no longer be passed on must not be waited for. */
  acknowledgeAgain(): void {
    this.acknowledge(this.isBroken || this.#isLeft ? Number.MAX_SAFE_INTEGER : this.#takenBytes);
  }

  /** Says again what the worker may have missed, since nothing is heard of it. */
  repeat(): void {
    if (this.#isAborted) this.abort();
    else this.acknowledgeAgain();
  }

  abort(): void {
    this.#isAborted = true;
    const channel = this.#workerId === undefined ? ALL_WORKERS_CHANNEL : processChannel(this.#workerId);
    this.#publish(channel, { kind: 'abort', id: this.id });
  }

  leave(): void {
    this.#isLeft = true;
    this.acknowledgeAgain();
  }

  forget(): void {
    this.#isForgotten = true;
    this.#events = [];
    // an abort may be lost, and so may an acknowledgement: the request stays known here until the worker has settled it
    if (!this.#isAborted && !this.#isLeft) this.#forget(this.id);
  }
}

/** Tells two answers apart by how long their events are, one after the other, without keeping them. */
function fingerprintOf(events: readonly string[], before = 0): number {
  return events.reduce((fingerprint, event) => (Math.imul(fingerprint, 31) + event.length) | 0, before);
}
