/** Memory of fresh processes after 20,000, 60,000 and 100,000 requests: small, and no longer growing. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BenchContext, NOT_OURS, ourTarget, type Section } from '../context.ts';
import { proportionalMegabytes, residentMegabytes } from '../proc-stat.ts';
import { format, type Goal, type SectionReport } from '../report.ts';
import { MODELS } from '../wire.ts';

const CONNECTIONS = 50;
const CHECKPOINTS = [20_000, 60_000, 100_000] as const;
const MAX_MEGABYTES = 200;
/** Growth from the second to the third checkpoint that still counts as flat. */
const FLAT_GROWTH = 0.1;
const SETTLE_MS = 1000;
const JUDGED = ['ingress', 'worker'];

function memoryOf(name: string, pid: number): number {
  return name === 'postgres' ? proportionalMegabytes(pid) : residentMegabytes(pid);
}

function goalsOf(samples: Map<string, number[]>): Goal[] {
  return JUDGED.map((name) => {
    const [, middle = Number.NaN, last = Number.NaN] = samples.get(name) ?? [];
    const growth = last / middle - 1;
    return {
      name: `memory of ${name} after 100,000 requests`,
      required: `≤ ${MAX_MEGABYTES} MB and flat (≤ ${FLAT_GROWTH * 100} % more than at 60,000)`,
      figure: `${format(last, 'MB')}, ${format(growth * 100, '%')}`,
      isMet: Number.isNaN(growth) ? undefined : last <= MAX_MEGABYTES && growth <= FLAT_GROWTH,
    };
  });
}

async function run(context: BenchContext): Promise<SectionReport> {
  const ours = ourTarget(context);
  if (ours === undefined || context.service === undefined) return NOT_OURS;
  context.say('memory over 100,000 requests');
  await context.service.stopProcesses();
  await context.service.startProcesses();
  const watched = [...context.watched()].filter(([name]) =>
    ['ingress', 'worker', 'redis', 'postgres'].includes(name),
  );
  const samples = new Map<string, number[]>(watched.map(([name, pid]) => [name, [memoryOf(name, pid)]]));
  let sent = 0;
  for (const checkpoint of CHECKPOINTS) {
    const until = { requests: checkpoint - sent };
    await context.load.run({
      kind: 'closed',
      target: ours.load,
      model: MODELS.instant,
      connections: CONNECTIONS,
      until,
    });
    sent = checkpoint;
    await sleep(SETTLE_MS);
    for (const [name, pid] of watched) samples.get(name)?.push(memoryOf(name, pid));
  }
  const afterStart = new Map([...samples].map(([name, values]) => [name, values.slice(1)]));
  return {
    tables: [
      {
        title: 'Resident memory, MB',
        columns: [
          'process',
          'at start',
          ...CHECKPOINTS.map((count) => `after ${count.toLocaleString('en-US')}`),
        ],
        rows: [...samples].map(([name, values]) => [
          name === 'postgres' ? 'postgres (all backends, shared pages once)' : name,
          ...values.map((value) => format(value)),
        ]),
      },
    ],
    goals: goalsOf(afterStart),
    notes: [],
  };
}

export const memory: Section = { name: 'memory', title: 'Memory', isInQuickRun: false, run };
