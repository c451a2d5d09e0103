/** What the benchmark asks of the load generator's process, and what comes back, over IPC. */
import type { Percentiles } from '../latency.ts';
import type { ModelName } from '../wire.ts';

/** Where requests go. Requests take turns through `apiKeys`, so that many accounts share the load. */
export interface LoadTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly apiKeys: readonly string[];
}

interface JobBase {
  readonly target: LoadTarget;
  readonly model: ModelName;
}

/** Each connection sends its next request when the last one is answered, for a time or for a number of requests. */
export interface ClosedLoopJob extends JobBase {
  readonly kind: 'closed';
  readonly connections: number;
  readonly until: { readonly seconds: number } | { readonly requests: number };
}

/** As the closed loop, with streamed answers read chunk by chunk. */
export interface StreamJob extends JobBase {
  readonly kind: 'streams';
  readonly connections: number;
  readonly seconds: number;
}

/** Requests leave on a fixed timetable whatever the answers do; latency counts from the timetable. */
export interface OpenLoopJob extends JobBase {
  readonly kind: 'open';
  readonly requestsPerSecond: number;
  readonly seconds: number;
}

export type LoadJob = ClosedLoopJob | StreamJob | OpenLoopJob;

export interface LoadResult {
  /** Answers that passed the checks. */
  readonly answers: number;
  readonly seconds: number;
  readonly requestsPerSecond: number;
  readonly latency: Percentiles;
  /** Streams only: until the first content chunk, and from upstream's write to our read of each later chunk. */
  readonly firstChunk?: Percentiles;
  readonly laterChunks?: Percentiles;
  readonly errors: number;
  readonly errorSamples: readonly string[];
}

const MAX_ERROR_SAMPLES = 5;

/** Counts what was not a valid answer and keeps the first few reasons. */
export class ErrorTally {
  count = 0;
  readonly samples: string[] = [];

  add(reason: string): void {
    this.count += 1;
    if (this.samples.length < MAX_ERROR_SAMPLES) this.samples.push(reason.slice(0, 300));
  }
}
