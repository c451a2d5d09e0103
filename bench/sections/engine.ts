/** Against the bare job engine: how much of its rate is left when every job is a paid, settled HTTP request. */
import type { BenchContext, Section } from '../context.ts';
import { median } from '../latency.ts';
import { forkModule, stopProcess } from '../processes.ts';
import { atLeast, format, type Goal, ratio, type SectionReport } from '../report.ts';
import { createDatabase } from '../stores.ts';
import { measureClosedLoop } from './closed-loop.ts';

const PEAK_CONNECTIONS = 200;
const DATABASE_NAME = 'engine';
const MODES = [
  { name: 'defaults', label: 'default settings (one job at a time)', jobCount: 4000 },
  { name: 'concurrent', label: '24 at a time, nothing batched', jobCount: 10_000 },
  { name: 'batched', label: "batched drain (its own performance test's settings)", jobCount: 100_000 },
] as const;

async function drain(context: BenchContext, settings: string, jobCount: number): Promise<number> {
  const { process, firstMessage } = await forkModule({
    name: 'engine-drain',
    modulePath: new URL('../engine-drain.ts', import.meta.url),
    args: [`${context.database.baseUrl}/${DATABASE_NAME}`, settings, String(jobCount)],
    directory: context.directory,
  });
  await stopProcess(process);
  return (firstMessage as { jobsPerSecond: number }).jobsPerSecond;
}

/** Our rate at the most connections, measured now if the closed loop was not part of this run. */
async function ourPeak(context: BenchContext): Promise<number | undefined> {
  const key = `requestsPerSecond/ours/${PEAK_CONNECTIONS}`;
  if (context.service !== undefined && !context.figures.has(key))
    await measureClosedLoop(context, PEAK_CONNECTIONS);
  return context.figures.get(key);
}

/** The goal names the default settings, which run one job at a time; the rate of 24 at a time stands beside it. */
function againstDefaults(toDefaults: number | undefined, toConcurrent: number | undefined): Goal {
  const goal = atLeast('against bare graphile-worker, default settings', toDefaults, 2.5);
  return { ...goal, figure: `${goal.figure} (${format(toConcurrent)} against 24 at a time)` };
}

async function run(context: BenchContext): Promise<SectionReport> {
  await createDatabase(context.database, DATABASE_NAME);
  const rates = new Map<string, number[]>(MODES.map(({ name }) => [name, []]));
  for (let round = 0; round < context.options.timing.rounds; round += 1) {
    for (const { name, label, jobCount } of MODES) {
      context.say(`bare graphile-worker, ${label}`);
      rates.get(name)?.push(await drain(context, name, jobCount));
    }
  }
  const ours = await ourPeak(context);
  const rateOf = (name: string) => median(rates.get(name) ?? []);
  return {
    tables: [
      {
        title: `Trivial jobs per second, against our whole requests at ${PEAK_CONNECTIONS} connections`,
        columns: ['bare graphile-worker', 'jobs/s', 'ours, req/s', 'ours / bare'],
        rows: MODES.map(({ name, label }) => [
          label,
          format(rateOf(name)),
          format(ours),
          format(ratio(ours, rateOf(name))),
        ]),
      },
    ],
    goals: [
      againstDefaults(ratio(ours, rateOf('defaults')), ratio(ours, rateOf('concurrent'))),
      atLeast('against bare graphile-worker, batched drain', ratio(ours, rateOf('batched')), 0.1),
    ],
    notes: [
      'Jobs are queued beforehand and only drained while timed; ours are accepted, queued, run, settled and answered.',
    ],
  };
}

export const engine: Section = {
  name: 'engine',
  title: 'Against the bare job engine',
  isInQuickRun: false,
  run,
};
