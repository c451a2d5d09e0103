/**
 * `node bench/against.ts FOLDER`: this checkout's service beside that of another checkout (a `git worktree` with its dependencies
 * installed), with the same load in turn. On a machine whose speed drifts by a third within minutes only this tells
 * whether a change of some per cent is one: run before and after, its figures would tell the weather.
 */
import { chmodSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { measureRounds, type Rounds, type Target } from './context.ts';
import { runInFolder } from './folder.ts';
import { LoadGenerator } from './load-generator.ts';
import { startMock } from './mock.ts';
import { format, renderTable } from './report.ts';
import type { Service as ServiceOf } from './service.ts';
import { setCommitDelay, startDatabase, startRedis } from './stores.ts';
import { MODELS } from './wire.ts';

const USAGE =
  'usage: npm run bench:against -- FOLDER [--connections 50,200] [--rounds 9] [--seconds 3] [--flush-ms 0]';
const ACCOUNT_COUNT = 40;
const FIRST_WARM_UP = { connections: 50, seconds: 12 };
const WARM_UP_SECONDS = 0.7;

interface Contender {
  readonly target: Target;
  readonly pids: ReadonlyMap<string, number>;
}

/** A service of the checkout in `root`, with a PostgreSQL and a Redis of its own. */
async function startContender(
  name: string,
  root: string,
  mockBaseUrl: string,
  parentDirectory: string,
  flushMs: number,
): Promise<Contender> {
  const directory = join(parentDirectory, name);
  mkdirSync(directory);
  chmodSync(directory, 0o755); // PostgreSQL does not run as root: its user must be able to enter the folder
  const database = await startDatabase(directory);
  const redis = await startRedis(directory);
  const { Service } = (await import(pathToFileURL(join(root, 'bench/service.ts')).href)) as {
    Service: typeof ServiceOf;
  };
  const options = { database, redis, mockBaseUrl, directory, accountCount: ACCOUNT_COUNT };
  const service = await Service.start(options);
  if (flushMs > 0) await setCommitDelay(database, flushMs * 1000);
  const pids = new Map([...service.pids, ['postgres', database.postgresPid]]);
  if (redis.process !== undefined) pids.set('redis', redis.process.pid);
  return { target: { name, label: name, load: service.target() }, pids };
}

function row(connections: number, { target, pids }: Contender, rounds: Rounds | undefined): string[] {
  const cpu = [...pids.keys()].map((name) => (rounds?.cpuMsPerAnswer(`${target.name} ${name}`) ?? 0) * 1000);
  const sum = cpu.reduce((total, each) => total + each, 0);
  const figures = [rounds?.requestsPerSecond, rounds?.p50Ms, rounds?.p99Ms, ...cpu, sum];
  return [String(connections), target.label, ...figures.map((figure) => format(figure))];
}

async function compare(
  other: string,
  plan: { connections: readonly number[]; rounds: number; seconds: number; flushMs: number },
  directory: string,
): Promise<number> {
  const { process: mock, baseUrl: mockBaseUrl } = await startMock(directory);
  const contenders = [
    await startContender('this', resolve(import.meta.dirname, '..'), mockBaseUrl, directory, plan.flushMs),
    await startContender('other', resolve(other), mockBaseUrl, directory, plan.flushMs),
  ];
  const load = await LoadGenerator.start(directory);
  const watched = new Map([
    ['mock', mock.pid],
    ['load', load.pid],
    ...contenders.flatMap(({ target, pids }) =>
      [...pids].map(([name, pid]) => [`${target.name} ${name}`, pid] as const),
    ),
  ]);
  const makeJob = ({ load: target }: Target, connections: number, seconds: number) =>
    ({ kind: 'closed', target, model: MODELS.instant, connections, until: { seconds } }) as const;

  for (const { target } of contenders)
    await load.run(makeJob(target, FIRST_WARM_UP.connections, FIRST_WARM_UP.seconds));
  const rows: string[][] = [];
  for (const connections of plan.connections) {
    console.error(`${connections} connections`);
    const measured = await measureRounds(
      { load, watched: () => watched, options: { timing: { ...plan, warmUpSeconds: WARM_UP_SECONDS } } },
      {
        targets: contenders.map(({ target }) => target),
        makeJob: (target, seconds) => makeJob(target, connections, seconds),
      },
    );
    for (const contender of contenders)
      rows.push(row(connections, contender, measured.get(contender.target.name)));
  }
  const processes = [...(contenders[0]?.pids.keys() ?? [])];
  const columns = ['connections', 'checkout', 'requests/s', 'p50 ms', 'p99 ms', ...processes, 'together'];
  console.log(renderTable({ title: 'Medians of the rounds; CPU in µs a request', columns, rows }));
  return 0;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    connections: { type: 'string', default: '50,200' },
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '3' },
    'flush-ms': { type: 'string', default: '0' },
  },
});
const plan = {
  connections: values.connections.split(',').map(Number),
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  flushMs: Number(values['flush-ms']),
};
const [other] = positionals;
const isPlan = [...plan.connections, plan.rounds].every((count) => Number.isInteger(count) && count > 0);
if (other === undefined || positionals.length > 1 || !isPlan || !(plan.seconds > 0) || !(plan.flushMs >= 0)) {
  console.error(USAGE);
  process.exit(2);
}

runInFolder((directory) => compare(other, plan, directory), console.error);
