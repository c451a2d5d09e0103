/**
 * Where answers arrive: frames from workers are matched to the requests that wait for them here. Frames may be lost; a request
 * that has heard nothing for a while, has a hole in its events, or whose carrier is down is looked up in the database, which
 * has the truth. So a lost message costs time, never an answer.
 */
import { isTimeoutError, type Pool } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import type { Bus } from '../core/relay/bus.ts';
import { ALL_WORKERS_CHANNEL, processChannel } from '../core/relay/frames.ts';
import { TransientMap } from '../core/transient-map.ts';
import { findBegun, voidRequests } from './data/requests.ts';
import { type Pending, PendingRequest } from './pending.ts';

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

export async function makeRelay(options: {
  ingressId: string;
  bus: Bus;
  pool: Pool;
  balancesPool: Pool;
  logger: Logger;
}): Promise<Relay> {
  const { bus, pool, balancesPool, logger } = options;
  const pending = new TransientMap<PendingRequest>();
  let isSweeping = false;
  const voidAll = makeVoiding(balancesPool, logger);
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
    for (const request of pending.values()) {
      if (everything || request.isBroken || request.lastHeardAt < silentSince) {
        request.lastHeardAt = Date.now();
        due.push(request.id);
      }
    }
    for (let start = 0; start < due.length; start += SWEEP_BATCH) {
      for (const request of await findBegun(pool, due.slice(start, start + SWEEP_BATCH))) {
        const waiting = pending.get(request.id);
        if (request.state === 'running') waiting?.begin();
        else waiting?.recover(request);
      }
    }
    for (const id of due) pending.get(id)?.repeat();
  }

  const timer = setInterval(() => {
    if (pending.size === 0) return;
    voidAll(pending.values().filter((request) => request.isToBeVoided));
    if (isSweeping) return;
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

/**
 * Voids requests in the background, those of one call at a time: a balance that stays locked keeps nobody from being looked up, and
 * no other request from being voided.
 */
function makeVoiding(
  balancesPool: Pool,
  logger: Logger,
): (requests: Iterable<{ readonly id: string }>) => void {
  let isVoiding = false;
  const failed = (error: unknown): void =>
    logger.warn({ err: error }, 'requests that were run twice could not be voided');
  async function voidAll(ids: readonly string[]): Promise<void> {
    try {
      await voidRequests(balancesPool, ids);
    } catch (error) {
      if (ids.length === 1 || !isTimeoutError(error)) throw error;
      for (const id of ids) await voidRequests(balancesPool, [id]).catch(failed);
    }
  }
  return (requests) => {
    if (isVoiding) return;
    const ids = Array.from(requests, ({ id }) => id);
    if (ids.length === 0) return;
    isVoiding = true;
    void voidAll(ids)
      .catch(failed)
      .finally(() => {
        isVoiding = false;
      });
  };
}
