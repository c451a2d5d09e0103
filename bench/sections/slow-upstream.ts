/** An upstream that takes 50 ms, as real ones take longer: a closed loop at 200 connections, and an open loop. */
import { type BenchContext, measureRounds, type Section } from '../context.ts';
import { atMost, difference, format, type SectionReport } from '../report.ts';
import { MODELS } from '../wire.ts';

const CONNECTIONS = 200;
const OPEN_LOOP_REQUESTS_PER_SECOND = 1000;

async function runSlowUpstream(context: BenchContext): Promise<SectionReport> {
  context.say(`50 ms upstream, ${CONNECTIONS} connections`);
  const rounds = await measureRounds(context, {
    targets: context.targets,
    makeJob: ({ load }, seconds) => ({
      kind: 'closed',
      target: load,
      model: MODELS.slow,
      connections: CONNECTIONS,
      until: { seconds },
    }),
  });
  const directMs = rounds.get('direct')?.p50Ms;
  const ours = difference(rounds.get('ours')?.p50Ms, directMs);
  return {
    tables: [
      {
        title: `${CONNECTIONS} connections, each answer 50 ms upstream`,
        columns: ['', 'req/s', 'p50 ms', 'p99 ms', 'p50 beyond direct'],
        rows: context.targets.map(({ name, label }) => {
          const each = rounds.get(name);
          const beyond = format(difference(each?.p50Ms, directMs), 'ms');
          return [label, format(each?.requestsPerSecond), format(each?.p50Ms), format(each?.p99Ms), beyond];
        }),
      },
    ],
    goals: [atMost('50 ms upstream at 200 connections: p50 beyond direct', ours, 10, 'ms')],
    notes: [],
  };
}

async function runOpenLoop(context: BenchContext): Promise<SectionReport> {
  context.say(`open loop, ${OPEN_LOOP_REQUESTS_PER_SECOND} requests a second`);
  const rounds = await measureRounds(context, {
    targets: context.targets,
    seconds: context.options.timing.openLoopSeconds,
    makeJob: ({ load }, seconds) => ({
      kind: 'open',
      target: load,
      model: MODELS.slow,
      requestsPerSecond: OPEN_LOOP_REQUESTS_PER_SECOND,
      seconds,
    }),
  });
  const direct = rounds.get('direct');
  const added = difference(rounds.get('ours')?.p50Ms, direct?.p50Ms);
  return {
    tables: [
      {
        title: `${OPEN_LOOP_REQUESTS_PER_SECOND} requests a second by the clock, 50 ms upstream`,
        columns: ['', 'p50 ms', 'p99 ms', 'added p50', 'added p99'],
        rows: context.targets.map(({ name, label }) => {
          const each = rounds.get(name);
          return [
            label,
            format(each?.p50Ms),
            format(each?.p99Ms),
            format(difference(each?.p50Ms, direct?.p50Ms), 'ms'),
            format(difference(each?.p99Ms, direct?.p99Ms), 'ms'),
          ];
        }),
      },
    ],
    goals: [atMost('open loop, 1,000 req/s, 50 ms upstream: added p50', added, 3, 'ms')],
    notes: [
      'Latency counts from when a request was due, not from when it could be sent (no coordinated omission).',
    ],
  };
}

export const slowUpstream: Section = {
  name: 'slow-upstream',
  title: 'A 50 ms upstream, closed loop',
  isInQuickRun: false,
  run: runSlowUpstream,
};

export const openLoop: Section = {
  name: 'open-loop',
  title: 'A 50 ms upstream, open loop',
  isInQuickRun: false,
  run: runOpenLoop,
};
