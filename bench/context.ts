/** What every section of the benchmark is given, and the way all of them measure. */

import { median, type Percentiles } from './latency.ts';
import type { LoadJob, LoadTarget } from './load/job.ts';
import type { LoadGenerator, Measurement } from './load-generator.ts';
import type { BenchOptions, Timing } from './options.ts';
import type { SectionReport } from './report.ts';
import type { Service } from './service.ts';
import type { Database, Redis } from './stores.ts';

export interface Target {
  /** A `TargetName`, or a name of a section's own for a variant it compares. */
  readonly name: string;
  readonly label: string;
  readonly load: LoadTarget;
}

/** Figures one section leaves for another, by name, e.g. `requestsPerSecond/ours/50`. */
type Figures = Map<string, number>;

export interface BenchContext {
  readonly options: BenchOptions;
  readonly directory: string;
  readonly targets: readonly Target[];
  readonly load: LoadGenerator;
  readonly database: Database;
  readonly redis: Redis;
  readonly service: Service | undefined;
  readonly figures: Figures;
  /** Process ids by name, of everything whose CPU time is told apart. */
  readonly watched: () => ReadonlyMap<string, number>;
  readonly say: (line: string) => void;
}

export interface Section {
  /** As given to `--only`. */
  readonly name: string;
  readonly title: string;
  readonly isInQuickRun: boolean;
  readonly run: (context: BenchContext) => Promise<SectionReport>;
}

/** Turns seconds into a job against a target; called for the warm-up too, with fewer seconds. */
type MakeJob = (target: Target, seconds: number) => LoadJob;

export interface RoundPlan {
  readonly targets: readonly Target[];
  readonly makeJob: MakeJob;
  readonly seconds?: number;
  readonly rounds?: number;
}

/** The rounds of one target at one setting. */
export class Rounds {
  readonly #measurements: readonly Measurement[];

  constructor(measurements: readonly Measurement[]) {
    this.#measurements = measurements;
  }

  median(pick: (measurement: Measurement) => number): number {
    return median(this.#measurements.map(pick));
  }

  get requestsPerSecond(): number {
    return this.median((each) => each.requestsPerSecond);
  }

  get p50Ms(): number {
    return this.median((each) => each.latency.p50Ms);
  }

  get p99Ms(): number {
    return this.median((each) => each.latency.p99Ms);
  }

  /** The median over the rounds of a percentile of another histogram than the whole answers'. */
  of(histogram: 'firstChunk' | 'laterChunks', percentile: keyof Percentiles): number {
    return this.median((each) => each[histogram]?.[percentile] ?? Number.NaN);
  }

  /** CPU milliseconds an answer cost in one process, over all rounds. */
  cpuMsPerAnswer(processName: string): number {
    const used = this.#measurements.reduce(
      (sum, each) => sum + (each.cpuMsByProcess.get(processName) ?? 0),
      0,
    );
    return used / this.#measurements.reduce((sum, each) => sum + each.answers, 0);
  }
}

/** What measuring takes of a run. */
interface Measuring extends Pick<BenchContext, 'load' | 'watched'> {
  readonly options: { readonly timing: Pick<Timing, 'seconds' | 'warmUpSeconds' | 'rounds'> };
}

/** Measures the targets in turn (A B C, A B C, …), so that a machine that drifts drifts for all of them. */
export async function measureRounds(context: Measuring, plan: RoundPlan): Promise<Map<string, Rounds>> {
  const { timing } = context.options;
  const seconds = plan.seconds ?? timing.seconds;
  const byTarget = new Map<string, Measurement[]>(plan.targets.map(({ name }) => [name, []]));
  for (let round = 0; round < (plan.rounds ?? timing.rounds); round += 1) {
    for (const target of plan.targets) {
      const warmUp = plan.makeJob(target, timing.warmUpSeconds);
      const job = plan.makeJob(target, seconds);
      byTarget.get(target.name)?.push(await context.load.measure(warmUp, job, context.watched()));
    }
  }
  return new Map([...byTarget].map(([name, measurements]) => [name, new Rounds(measurements)]));
}

export function ourTarget(context: BenchContext): Target | undefined {
  return context.targets.find(({ name }) => name === 'ours');
}

export const NOT_OURS: SectionReport = {
  tables: [],
  goals: [],
  notes: ['Skipped: the service is not among the targets.'],
};
