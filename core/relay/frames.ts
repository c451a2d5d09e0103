/**
 * What workers and ingresses say to each other while a request runs. Frames are hints and carriers, never the truth: any of
 * them may be lost, and the receiver then finds the state in the database. Events of a stream are numbered, so that a hole is seen.
 */
import type { ErrorCode } from '../errors.ts';

export type FinalState = 'succeeded' | 'failed' | 'cancelled' | 'expired';

/** Worker to ingress: the next events of a stream. */
export interface EventsFrame {
  readonly kind: 'events';
  readonly id: string;
  /** The worker that runs it, for acknowledgements and aborts. */
  readonly workerId: string;
  /**
   * Which run of the request this is: a request that is run again has a higher one. A crash of the database can take back
   * that a job was taken, so one number may be two workers'.
   */
  readonly run: number;
  /** Number of the first event, from 0. */
  readonly first: number;
  /** JSON texts, each the data of one event. */
  readonly events: readonly string[];
}

/** Worker to ingress: the request is on the books. */
export interface FinishedFrame {
  readonly kind: 'finished';
  readonly id: string;
  /** The worker that ran it; undefined when the database says so. */
  readonly workerId?: string;
  readonly run: number;
  readonly state: FinalState;
  readonly costAp: number;
  /** How many events the stream has in all; 0 when not a stream. With a body too they carry a file, which the body names. */
  readonly eventCount: number;
  /** The last events of a stream, up to eventCount. */
  readonly events?: readonly string[];
  /** The JSON body; absent when there is none, or when it is too large for a frame and waits in the database. */
  readonly body?: string;
  readonly errorCode?: ErrorCode;
  readonly errorDetails?: Readonly<Record<string, unknown>>;
}

/** Ingress to worker: the caller went away, or cancelled. */
export interface AbortFrame {
  readonly kind: 'abort';
  readonly id: string;
}

/** Ingress to worker: the reader took this much of a stream. */
export interface TakenFrame {
  readonly kind: 'taken';
  readonly id: string;
  /** Bytes taken since the stream began. */
  readonly bytes: number;
}

export type Frame = EventsFrame | FinishedFrame | AbortFrame | TakenFrame;

/** Bodies above this many characters are fetched from the database instead of riding in a frame. */
export const MAX_FRAME_BODY = 256 * 1024;

/** The channel a process listens to. */
export function processChannel(processId: string): string {
  return `svc:relay:${processId}`;
}

/** The channel every worker listens to, for aborts of requests whose worker is not known yet. */
export const ALL_WORKERS_CHANNEL = 'svc:relay:workers';
