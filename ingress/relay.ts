/**
 * Where answers arrive: frames from workers are matched to the requests that wait for them here. Frames may be lost; a request
 * that has heard nothing for a while, has a hole in its events, or whose carrier is down is looked up in the database, which
 * has the truth. So a lost message costs time, never an answer.
 */
import type { Pool } from '../core/database.ts';
import { isErrorCode } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Bus } from '../core/relay/bus.ts';
import {
  ALL_WORKERS_CHANNEL,
  type EventsFrame,
  type FinishedFrame,
  type Frame,
  processChannel,
} from '../core/relay/frames.ts';
import { type FinishedRequest, findFinished, voidRequests } from './data/requests.ts';

export interface Pending {
  readonly id: string;
  /** Resolves when the request is on the books. */
  readonly finished: Promise<FinishedFrame>;
  /** Takes the events that have arrived and not been taken; a stream's reader calls it whenever `onEvents` fired. */
  takeEvents(): string[];
  /** What was passed on is not how the stored answer begins: the caller's connection is cut, and it can collect the answer. */
  readonly isForked: boolean;
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

export interface Relay {
  readonly ingressId: string;
  /** Registers a request before it is submitted, so that no frame can be early. */
  expect(id: string): Pending;
  /** Stops a request that somebody may be waiting for, here or at another ingress. */
  abort(id: string): void;
  readonly pendingCount: number;
  readonly isConnected: boolean;
  /** From here on callers are cut by us, not by their own doing: what they asked for goes on, to be collected. */
  letGo(): void;
  close(): void;
}

/** Silence after which a request is looked up in the database. */
const SILENCE_MS = 1000;
const SWEEP_MS = 250;
const SWEEP_BATCH = 500;

class PendingRequest implements Pending {
  readonly id: string;
  readonly finished: Promise<FinishedFrame>;
  onEvents: (() => void) | undefined;
  lastHeardAt = Date.now();
  /** A hole was seen: only the database can tell the rest. */
  isBroken = false;
  /** Two runs of a stream cannot be joined: it is voided, unless one of them is on the books already. */
  isToBeVoided = false;
  isForked = false;
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

export async function makeRelay(options: {
  ingressId: string;
  bus: Bus;
  pool: Pool;
  logger: Logger;
}): Promise<Relay> {
  const { bus, pool, logger } = options;
  const pending = new Map<string, PendingRequest>();
  let isSweeping = false;
  let mayHaveLostFrames = false;
  let hasLetGo = false;

  await bus.subscribe(processChannel(options.ingressId), (frame) => {
    if (frame.kind === 'events' || frame.kind === 'finished') pending.get(frame.id)?.hear(frame);
  });
  bus.onGap(() => {
    mayHaveLostFrames = true;
  });

  async function sweep(): Promise<void> {
    const everything = mayHaveLostFrames || !bus.isConnected;
    mayHaveLostFrames = false;
    const silentSince = Date.now() - SILENCE_MS;
    const due: string[] = [];
    const voided = [...pending.values()].filter((request) => request.isToBeVoided).map(({ id }) => id);
    if (voided.length > 0) await voidRequests(pool, voided);
    for (const request of pending.values()) {
      if (everything || request.isBroken || request.lastHeardAt < silentSince) {
        request.lastHeardAt = Date.now();
        due.push(request.id);
      }
    }
    for (let start = 0; start < due.length; start += SWEEP_BATCH) {
      for (const request of await findFinished(pool, due.slice(start, start + SWEEP_BATCH))) {
        pending.get(request.id)?.recover(request);
      }
    }
    for (const id of due) pending.get(id)?.repeat();
  }

  const timer = setInterval(() => {
    if (isSweeping || pending.size === 0) return;
    isSweeping = true;
    sweep()
      .catch((error: unknown) => logger.warn({ err: error }, 'waiting requests could not be looked up'))
      .finally(() => {
        isSweeping = false;
      });
  }, SWEEP_MS);
  timer.unref();

  return {
    ingressId: options.ingressId,
    expect(id) {
      const request = new PendingRequest(
        id,
        (channel, frame) => {
          if (!hasLetGo || frame.kind !== 'abort') bus.publish(channel, frame);
        },
        (forgotten) => pending.delete(forgotten),
      );
      pending.set(id, request);
      return request;
    },
    abort(id) {
      const waiting = pending.get(id);
      if (waiting === undefined) bus.publish(ALL_WORKERS_CHANNEL, { kind: 'abort', id });
      else waiting.abort();
    },
    get isConnected() {
      return bus.isConnected;
    },
    get pendingCount() {
      return pending.size;
    },
    letGo() {
      hasLetGo = true;
    },
    close() {
      clearInterval(timer);
    },
  };
}
