/** Streamed chat: time to the first chunk, and how much later than upstream's write every later chunk arrives. */
import { type BenchContext, measureRounds, type Rounds, type Section } from '../context.ts';
import type { Percentiles } from '../latency.ts';
import { atMost, difference, format, type SectionReport, type Table } from '../report.ts';
import { PORTKEY_FIRST_CHUNK_SLEEP_MS } from '../targets/portkey.ts';
import { MODELS, STREAM_CHUNK_COUNT, STREAM_CHUNK_INTERVAL_MS } from '../wire.ts';

type ByTarget = Map<string, Rounds>;
type Histogram = 'firstChunk' | 'laterChunks';

function measureStreams(context: BenchContext, connections: number): Promise<ByTarget> {
  context.say(`streams, ${connections} connections`);
  return measureRounds(context, {
    targets: context.targets,
    makeJob: (target, seconds) => ({
      kind: 'streams',
      target: target.load,
      model: MODELS.stream,
      connections,
      seconds,
    }),
  });
}

function beyondDirect(
  rounds: ByTarget | undefined,
  histogram: Histogram,
  percentile: keyof Percentiles,
): number | undefined {
  return difference(
    rounds?.get('ours')?.of(histogram, percentile),
    rounds?.get('direct')?.of(histogram, percentile),
  );
}

function delayTable(title: string, histogram: Histogram, byConnections: Map<number, ByTarget>): Table {
  const pair = (rounds: Rounds | undefined) =>
    `${format(rounds?.of(histogram, 'p50Ms'))} / ${format(rounds?.of(histogram, 'p99Ms'))}`;
  return {
    title,
    columns: ['connections', 'mock direct', 'Portkey', 'ours', 'ours beyond direct, p50'],
    rows: [...byConnections].map(([connections, rounds]) => [
      String(connections),
      pair(rounds.get('direct')),
      pair(rounds.get('portkey')),
      pair(rounds.get('ours')),
      format(beyondDirect(rounds, histogram, 'p50Ms'), 'ms'),
    ]),
  };
}

function rateTable(byConnections: Map<number, ByTarget>): Table {
  const rate = (rounds: Rounds | undefined) => format(rounds?.requestsPerSecond);
  return {
    title: 'Whole streams per second',
    columns: ['connections', 'mock direct', 'Portkey', 'ours'],
    rows: [...byConnections].map(([connections, rounds]) => [
      String(connections),
      rate(rounds.get('direct')),
      rate(rounds.get('portkey')),
      rate(rounds.get('ours')),
    ]),
  };
}

async function run(context: BenchContext): Promise<SectionReport> {
  const byConnections = new Map<number, ByTarget>();
  for (const connections of context.options.timing.connections)
    byConnections.set(connections, await measureStreams(context, connections));

  const goalConnections = [1, 50] as const;
  const firstChunkLimitMs = { 1: 4, 50: 7 } as const;
  return {
    tables: [
      delayTable('Time to the first content chunk, ms (p50 / p99)', 'firstChunk', byConnections),
      delayTable(
        "From upstream's write to the caller's read of each later chunk, ms (p50 / p99)",
        'laterChunks',
        byConnections,
      ),
      rateTable(byConnections),
    ],
    goals: goalConnections.flatMap((connections) => {
      const rounds = byConnections.get(connections);
      const at = `at ${connections} connection${connections === 1 ? '' : 's'}`;
      return [
        atMost(
          `stream first byte beyond direct, p50 ${at}`,
          beyondDirect(rounds, 'firstChunk', 'p50Ms'),
          firstChunkLimitMs[connections],
          'ms',
        ),
        atMost(
          `each later chunk beyond direct, p50 ${at}`,
          beyondDirect(rounds, 'laterChunks', 'p50Ms'),
          1,
          'ms',
        ),
      ];
    }),
    notes: [
      `Streams of ${STREAM_CHUNK_COUNT} chunks, ${STREAM_CHUNK_INTERVAL_MS} ms apart, with a usage chunk. ` +
        `Portkey's first chunk includes its own fixed sleep of ${PORTKEY_FIRST_CHUNK_SLEEP_MS} ms before it; ` +
        'take that off to compare the ways through.',
    ],
  };
}

export const streams: Section = { name: 'streams', title: 'Chat, streamed', isInQuickRun: true, run };
