/**
 * Where answers arrive: frames from workers are matched to the requests that wait for them here. Frames may be lost; a request
 * that has heard nothing for a while, has a hole in its events, or whose carrier is down is looked up in the database, which
 * has the truth. So a lost message costs time, never an answer.
 */
import { type Pool } from '../core/database.ts';
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
import { type FinishedRequest, findFinished } from './data/requests.ts';

export interface Pending {
  readonly id: string;
  /** Resolves when the request is on the books. */
  readonly finished: Promise<FinishedFrame>;
  /** Takes the events that have arrived and not been taken; a stream's reader calls it whenever `onEvents` fired. */
  takeEvents(): string[];
  /** Called when events are there to take, or the request has finished. */
  onEvents: (() => void) | undefined;
  /** The reader took this many bytes since the stream began: the worker may send more. */
  acknowledge(bytes: number): void;
  /** The caller went away: the worker stops and settles. */
  abort(): void;
  /** Nobody waits any more. */
  forget(): void;
}

export interface Relay {
  readonly ingressId: string;
  /** Registers a request before it is submitted, so that no frame can be early. */
  expect(id: string): Pending;
  readonly pendingCount: number;
  readonly isConnected: boolean;
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

  readonly #publish: (channel: string, frame: Frame) => void;
  readonly #forget: (id: string) => void;
  #resolve!: (frame: FinishedFrame) => void;
  #events: string[] = [];
  #received = 0;
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
    if (this.#run !== undefined && frame.run !== this.#run) {
      // the request is run again: what was passed on came from the run before and cannot be taken back
      if (this.#received > 0) {
        this.isBroken = true;
        this.abort();
        return;
      }
    }
    this.#run = frame.run;
    this.#workerId = frame.workerId;
    if (this.isBroken || frame.first > this.#received) {
      this.isBroken = true;
      return;
    }
    this.#push(frame.events.slice(this.#received - frame.first));
  }

  #hearFinished(frame: FinishedFrame): void {
    if (frame.state === 'succeeded') {
      const first = frame.eventCount - (frame.events?.length ?? 0);
      const isWhole = this.#received >= first && (this.#run === undefined || this.#run === frame.run);
      const hasBody = frame.eventCount > 0 ? isWhole : frame.body !== undefined;
      if (!hasBody || this.isBroken) {
        this.isBroken = true;
        this.lastHeardAt = 0; // look it up at the next sweep
        return;
      }
      this.#push((frame.events ?? []).slice(this.#received - first));
    }
    this.#end(frame);
  }

  /** The database's word, which also holds what was lost on the way. */
  recover(request: FinishedRequest): void {
    const events = request.result?.kind === 'events' ? request.result.body.split('\n') : [];
    if (request.state === 'succeeded') this.#push(events.slice(this.#received));
    this.#end({
      kind: 'finished',
      id: request.id,
      run: 0,
      state: request.state,
      costAp: request.costAp,
      eventCount: events.length,
      ...(request.result?.kind === 'json' ? { body: request.result.body } : {}),
      ...(request.errorCode !== null && isErrorCode(request.errorCode) ? { errorCode: request.errorCode } : {}),
      ...(request.errorDetails === null ? {} : { errorDetails: request.errorDetails }),
    });
  }

  #push(events: readonly string[]): void {
    if (events.length === 0) return;
    this.#received += events.length;
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
    if (this.#workerId !== undefined) {
      this.#publish(processChannel(this.#workerId), { kind: 'taken', id: this.id, bytes });
    }
  }

  abort(): void {
    const channel = this.#workerId === undefined ? ALL_WORKERS_CHANNEL : processChannel(this.#workerId);
    this.#publish(channel, { kind: 'abort', id: this.id });
  }

  forget(): void {
    this.#forget(this.id);
  }
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
        (channel, frame) => bus.publish(channel, frame),
        (forgotten) => pending.delete(forgotten),
      );
      pending.set(id, request);
      return request;
    },
    get isConnected() {
      return bus.isConnected;
    },
    get pendingCount() {
      return pending.size;
    },
    close() {
      clearInterval(timer);
    },
  };
}
