/** Our service alone, under what wears a service down: time, one account for everybody, a slow disk. All at 50 connections. */
import {
  type BenchContext,
  measureRounds,
  NOT_OURS,
  ourTarget,
  type Section,
  type Target,
} from '../context.ts';
import { atLeast, format, ratio, type SectionReport } from '../report.ts';
import { commitMs, setCommitDelay } from '../stores.ts';
import { MODELS } from '../wire.ts';
import { measureClosedLoop } from './closed-loop.ts';

const CONNECTIONS = 50;
const SLOW_FLUSH_MICROSECONDS = 4000;

function closedJob(target: Target, seconds: number) {
  return {
    kind: 'closed',
    target: target.load,
    model: MODELS.instant,
    connections: CONNECTIONS,
    until: { seconds },
  } as const;
}

async function runSustained(context: BenchContext): Promise<SectionReport> {
  const ours = ourTarget(context);
  if (ours === undefined) return NOT_OURS;
  const key = `requestsPerSecond/ours/${CONNECTIONS}`;
  if (!context.figures.has(key)) await measureClosedLoop(context, CONNECTIONS);
  const short = context.figures.get(key);
  const seconds = context.options.timing.sustainedSeconds;
  context.say(`sustained for ${seconds} s`);
  const rounds = await measureRounds(context, { targets: [ours], rounds: 1, seconds, makeJob: closedJob });
  const long = rounds.get('ours');
  const kept = ratio(long?.requestsPerSecond, short);
  return {
    tables: [
      {
        title: `${CONNECTIONS} connections for ${seconds} s`,
        columns: ['', 'req/s', 'p50 ms', 'p99 ms', 'of the short run'],
        rows: [
          ['short run', format(short), '', '', ''],
          [
            `${seconds} s`,
            format(long?.requestsPerSecond),
            format(long?.p50Ms),
            format(long?.p99Ms),
            format(kept),
          ],
        ],
      },
    ],
    goals: [atLeast(`sustained for ${seconds} s at 50 connections, times the short run`, kept, 0.85)],
    notes: [],
  };
}

async function runHotAccount(context: BenchContext): Promise<SectionReport> {
  const many = ourTarget(context);
  if (many === undefined || context.service === undefined) return NOT_OURS;
  context.say('one hot account');
  const hot: Target = {
    name: 'hot',
    label: 'one account',
    load: context.service.target([context.service.hotKey]),
  };
  const rounds = await measureRounds(context, { targets: [many, hot], makeJob: closedJob });
  const [spread, single] = [rounds.get('ours'), rounds.get('hot')];
  const row = (label: string, each: typeof spread) => [
    label,
    format(each?.requestsPerSecond),
    format(each?.p50Ms),
    format(each?.p99Ms),
  ];
  return {
    tables: [
      {
        title: `${CONNECTIONS} connections, all on one account's balance`,
        columns: ['', 'req/s', 'p50 ms', 'p99 ms'],
        rows: [row(`${context.service.apiKeys.length} accounts`, spread), row('one account', single)],
      },
    ],
    goals: [],
    notes: [
      `One hot account keeps ${format(ratio(single?.requestsPerSecond, spread?.requestsPerSecond))} of the rate.`,
    ],
  };
}

async function runSlowDisk(context: BenchContext): Promise<SectionReport> {
  const ours = ourTarget(context);
  if (ours === undefined) return NOT_OURS;
  context.say('slow disk');
  const fastCommitMs = await commitMs(context.database);
  await setCommitDelay(context.database, SLOW_FLUSH_MICROSECONDS);
  try {
    const slowCommitMs = await commitMs(context.database);
    const rounds = await measureRounds(context, { targets: [ours], makeJob: closedJob });
    const slow = rounds.get('ours');
    return {
      tables: [
        {
          title: `${CONNECTIONS} connections, 4 ms added to every flush`,
          columns: ['a lone commit as it is', 'slowed', 'req/s', 'p50 ms', 'p99 ms'],
          rows: [
            [
              format(fastCommitMs, 'ms'),
              format(slowCommitMs, 'ms'),
              format(slow?.requestsPerSecond),
              format(slow?.p50Ms),
              format(slow?.p99Ms),
            ],
          ],
        },
      ],
      goals: [atLeast('4 ms added per disk flush: req/s at 50 connections', slow?.requestsPerSecond, 2000)],
      notes: [
        "Emulated with PostgreSQL's commit_delay = 4000 µs and commit_siblings = 0: whoever leads a flush sleeps 4 ms " +
          'before it while holding the lock that other commits wait for, as behind a slow disk.',
      ],
    };
  } finally {
    await setCommitDelay(context.database, 0);
  }
}

export const sustained: Section = {
  name: 'sustained',
  title: 'Sustained load',
  isInQuickRun: false,
  run: runSustained,
};
export const hotAccount: Section = {
  name: 'hot-account',
  title: 'One hot account',
  isInQuickRun: false,
  run: runHotAccount,
};
export const slowDisk: Section = {
  name: 'slow-disk',
  title: 'A slow disk',
  isInQuickRun: false,
  run: runSlowDisk,
};
