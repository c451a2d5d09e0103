/** The parent's side of the load generator: one job at a time, warm-up, CPU of everybody involved, and failure on any bad answer. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadJob, LoadResult } from './load/job.ts';
import type { LoadReply } from './load.ts';
import { cpuMs, machineCpuMs } from './proc-stat.ts';
import { type BenchProcess, forkModule, nextMessage, trimLogs } from './processes.ts';

/** Lets what a finished job left behind (aborted requests, their voids) drain before the next one is timed. */
const PAUSE_BETWEEN_JOBS_MS = 300;

/** A result with the CPU milliseconds each watched process used while the job ran. */
export interface Measurement extends LoadResult {
  readonly cpuMsByProcess: ReadonlyMap<string, number>;
}

export class LoadGenerator {
  readonly #process: BenchProcess;
  /** Valid answers per target address since the start, warm-ups included: what the books must at least hold. */
  readonly answersByUrl = new Map<string, number>();

  /** Share of the machine's CPU used by others than the watched processes, of every measured job. */
  readonly foreignCpuShares: number[] = [];

  private constructor(process: BenchProcess) {
    this.#process = process;
  }

  static async start(directory: string): Promise<LoadGenerator> {
    const modulePath = new URL('./load.ts', import.meta.url);
    const forked = await forkModule({ name: 'load', modulePath, args: [], directory });
    return new LoadGenerator(forked.process);
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Runs one job; any answer that is not a valid one fails it. */
  async run(job: LoadJob): Promise<LoadResult> {
    const reply = nextMessage(this.#process);
    this.#process.child.send(job);
    const message = (await reply) as LoadReply;
    trimLogs();
    if ('failure' in message) throw new Error(message.failure);
    const { result } = message;
    this.answersByUrl.set(job.target.url, (this.answersByUrl.get(job.target.url) ?? 0) + result.answers);
    if (result.errors > 0 || result.answers === 0) {
      const what = `${result.errors} errors beside ${result.answers} valid answers from ${job.target.url}`;
      throw new Error(`${what} (${job.kind}, ${job.model}): ${result.errorSamples.join(' | ')}`);
    }
    return result;
  }

  /** Warms up with a short job of the same kind, then measures. */
  async measure(
    warmUp: LoadJob | undefined,
    job: LoadJob,
    watched: ReadonlyMap<string, number>,
  ): Promise<Measurement> {
    if (warmUp !== undefined) await this.run(warmUp);
    await sleep(PAUSE_BETWEEN_JOBS_MS);
    const [before, machineBefore] = [cpuOf(watched), machineCpuMs()];
    const result = await this.run(job);
    const [after, machineAfter] = [cpuOf(watched), machineCpuMs()];
    const cpuMsByProcess = new Map([...after].map(([name, used]) => [name, used - (before.get(name) ?? 0)]));
    const ownMs = cpuMsByProcess.values().reduce((sum, each) => sum + each, 0);
    const foreignMs = machineAfter.busyMs - machineBefore.busyMs - ownMs;
    this.foreignCpuShares.push(Math.max(0, foreignMs / (machineAfter.totalMs - machineBefore.totalMs)));
    await sleep(PAUSE_BETWEEN_JOBS_MS);
    return { ...result, cpuMsByProcess };
  }
}

function cpuOf(watched: ReadonlyMap<string, number>): Map<string, number> {
  return new Map([...watched].map(([name, pid]) => [name, cpuMs(pid)]));
}
