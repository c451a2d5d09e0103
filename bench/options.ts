/** The command line of `npm run bench`. */
import { parseArgs } from 'node:util';

const TARGET_NAMES = ['direct', 'portkey', 'ours'] as const;
export type TargetName = (typeof TARGET_NAMES)[number];

const USAGE = `usage: npm run bench -- [--quick] [--only SECTION[,SECTION]] [--targets direct,portkey,ours] [--connections 50,200] [--write]
  --quick    the closed loops at 10 and 50 connections for 3 s each, once
  --only     only these sections (see docs/benchmarks.md)
  --targets  leave one out while developing; ratios to it are then missing
  --connections  the closed loops at these numbers of connections only
  --write    also write the report to bench/results/<date>.md`;

/** How long and how often each measurement runs. */
export interface Timing {
  readonly connections: readonly number[];
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly rounds: number;
  readonly openLoopSeconds: number;
  readonly sustainedSeconds: number;
  readonly accountCount: number;
}

export interface BenchOptions {
  readonly isQuick: boolean;
  readonly only: readonly string[];
  readonly targets: readonly TargetName[];
  readonly isWritten: boolean;
  readonly timing: Timing;
}

const FULL: Timing = {
  connections: [1, 10, 50, 200],
  seconds: 5,
  warmUpSeconds: 1,
  rounds: 3,
  openLoopSeconds: 10,
  sustainedSeconds: 90,
  accountCount: 100,
};

const QUICK: Timing = {
  connections: [10, 50],
  seconds: 3,
  warmUpSeconds: 1,
  rounds: 1,
  openLoopSeconds: 5,
  sustainedSeconds: 15,
  accountCount: 10,
};

function splitList(text: string | undefined): string[] {
  return (text ?? '').split(',').filter((part) => part !== '');
}

/** Reads the arguments; throws an error whose message ends with the usage. */
export function readOptions(args: string[], sectionNames: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      targets: { type: 'string' },
      connections: { type: 'string' },
      write: { type: 'boolean', default: false },
    },
  });
  const only = splitList(values.only);
  const unknownSection = only.find((name) => !sectionNames.includes(name));
  if (unknownSection !== undefined)
    throw new Error(`no section «${unknownSection}»; there are: ${sectionNames.join(', ')}\n${USAGE}`);
  const asked = splitList(values.targets);
  const unknownTarget = asked.find((name) => !TARGET_NAMES.some((known) => known === name));
  if (unknownTarget !== undefined) throw new Error(`no target «${unknownTarget}»\n${USAGE}`);
  const connections = splitList(values.connections).map(Number);
  if (connections.some((count) => !Number.isInteger(count) || count < 1))
    throw new Error(`--connections takes whole numbers\n${USAGE}`);
  const timing = values.quick ? QUICK : FULL;
  return {
    isQuick: values.quick,
    only,
    targets: asked.length === 0 ? TARGET_NAMES : TARGET_NAMES.filter((name) => asked.includes(name)),
    isWritten: values.write,
    timing: connections.length === 0 ? timing : { ...timing, connections },
  };
}
