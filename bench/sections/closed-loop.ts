/** Non-streamed chat in a closed loop, upstream answering at once; and where the CPU time of a request goes. */
import { type BenchContext, measureRounds, type Rounds, type Section } from '../context.ts';
import type { TargetName } from '../options.ts';
import {
  atLeast,
  atMost,
  difference,
  format,
  MISSING,
  ratio,
  type SectionReport,
  type Table,
} from '../report.ts';
import { MODELS } from '../wire.ts';

const CPU_CONNECTIONS = 50;
const SERVICE_PROCESSES = ['ingress', 'worker', 'postgres', 'redis'];

/** Measures one number of connections, and leaves the throughput for other sections. */
export async function measureClosedLoop(
  context: BenchContext,
  connections: number,
): Promise<Map<string, Rounds>> {
  context.say(`closed loop, ${connections} connections`);
  const rounds = await measureRounds(context, {
    targets: context.targets,
    makeJob: (target, seconds) => ({
      kind: 'closed',
      target: target.load,
      model: MODELS.instant,
      connections,
      until: { seconds },
    }),
  });
  for (const [name, each] of rounds)
    context.figures.set(`requestsPerSecond/${name}/${connections}`, each.requestsPerSecond);
  return rounds;
}

function throughputRow(connections: number, rounds: Map<string, Rounds>): string[] {
  const cell = (name: TargetName) => {
    const each = rounds.get(name);
    if (each === undefined) return MISSING;
    return `${format(each.requestsPerSecond)} (${format(each.p50Ms)} / ${format(each.p99Ms)})`;
  };
  const [ours, portkey] = [rounds.get('ours'), rounds.get('portkey')];
  return [
    String(connections),
    cell('direct'),
    cell('portkey'),
    cell('ours'),
    format(ratio(ours?.requestsPerSecond, portkey?.requestsPerSecond)),
    format(difference(ours?.p50Ms, rounds.get('direct')?.p50Ms), 'ms'),
  ];
}

function cpuTable(rounds: Map<string, Rounds>): Table {
  const [ours, portkey] = [rounds.get('ours'), rounds.get('portkey')];
  const total = SERVICE_PROCESSES.map((name) => ours?.cpuMsPerAnswer(name) ?? Number.NaN).reduce(
    (sum, ms) => sum + ms,
    0,
  );
  const row = (name: string, ms: number | undefined) => [
    name,
    ms === undefined ? MISSING : format(ms * 1000, 'µs'),
  ];
  return {
    title: `CPU time of one request at ${CPU_CONNECTIONS} connections (user + system, all of a process's threads)`,
    columns: ['process', 'per request'],
    rows: [
      ...SERVICE_PROCESSES.map((name) =>
        row(name === 'postgres' ? 'postgres (all backends)' : name, ours?.cpuMsPerAnswer(name)),
      ),
      row('**ours together**', total),
      row('Portkey', portkey?.cpuMsPerAnswer('portkey')),
      row('mock upstream, under ours', ours?.cpuMsPerAnswer('mock')),
      row('load generator, under ours', ours?.cpuMsPerAnswer('load')),
    ],
  };
}

async function run(context: BenchContext): Promise<SectionReport> {
  const byConnections = new Map<number, Map<string, Rounds>>();
  for (const connections of context.options.timing.connections)
    byConnections.set(connections, await measureClosedLoop(context, connections));

  const throughputRatio = (connections: number) => {
    const rounds = byConnections.get(connections);
    return ratio(rounds?.get('ours')?.requestsPerSecond, rounds?.get('portkey')?.requestsPerSecond);
  };
  const lone = byConnections.get(1);
  const atFifty = byConnections.get(CPU_CONNECTIONS);
  return {
    tables: [
      {
        title: 'Requests per second (p50 / p99 ms)',
        columns: [
          'connections',
          'mock direct',
          'Portkey',
          'ours, fully booked',
          'ours / Portkey',
          'p50 beyond direct',
        ],
        rows: [...byConnections].map(([connections, rounds]) => throughputRow(connections, rounds)),
      },
      ...(atFifty === undefined ? [] : [cpuTable(atFifty)]),
    ],
    goals: [
      atLeast("throughput at 50 connections, times Portkey's", throughputRatio(50), 1.5),
      atLeast("throughput at 200 connections, times Portkey's", throughputRatio(200), 2.2),
      atMost(
        'p50 at 1 connection, beyond direct',
        difference(lone?.get('ours')?.p50Ms, lone?.get('direct')?.p50Ms),
        2,
        'ms',
      ),
    ],
    notes: ['Portkey is stateless: it keeps no accounts, no books, no queue, and checks no key.'],
  };
}

export const closedLoop: Section = {
  name: 'closed-loop',
  title: 'Chat, not streamed, upstream answering at once',
  isInQuickRun: true,
  run,
};
