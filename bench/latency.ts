/** Latency histograms with microsecond resolution, and medians over rounds. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';

const HIGHEST_MICROSECONDS = 120_000_000;

export interface Percentiles {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export class LatencyRecorder {
  readonly #histogram: RecordableHistogram = createHistogram({
    lowest: 1,
    highest: HIGHEST_MICROSECONDS,
    figures: 3,
  });

  recordMs(milliseconds: number): void {
    const microseconds = Math.round(milliseconds * 1000);
    this.#histogram.record(Math.min(Math.max(microseconds, 1), HIGHEST_MICROSECONDS));
  }

  percentiles(): Percentiles {
    const histogram = this.#histogram;
    return {
      count: histogram.count,
      p50Ms: histogram.percentile(50) / 1000,
      p99Ms: histogram.percentile(99) / 1000,
      maxMs: histogram.count === 0 ? 0 : histogram.max / 1000,
    };
  }
}

/** The middle value; of an even number, the mean of the middle two. NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
