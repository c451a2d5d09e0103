/** The run's own PostgreSQL and Redis, and the few statements the bench itself sends to PostgreSQL. */
import { spawnSync } from 'node:child_process';
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { median } from './latency.ts';
import { freePort } from './network.ts';
import { type BenchProcess, forkModule, startProcess } from './processes.ts';

const FLUSH_SAMPLES = 100;
const WAL_PAGE_BYTES = 8192;
const REDIS_HELP = `redis-server was not found. Install it (Debian: apt-get install redis-server; macOS: brew install redis)
or set REDIS_URL to a running Redis that may be used for the benchmark.`;

export interface Database {
  readonly keeper: BenchProcess;
  readonly postgresPid: number;
  /** The address without a database name. */
  readonly baseUrl: string;
}

export async function startDatabase(directory: string): Promise<Database> {
  const { process: keeper, firstMessage } = await forkModule({
    name: 'database-keeper',
    modulePath: new URL('./database-keeper.ts', import.meta.url),
    args: [directory, String(await freePort())],
    directory,
  });
  const { postgresPid, baseUrl } = firstMessage as { postgresPid: number; baseUrl: string };
  return { keeper, postgresPid, baseUrl };
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

export function createDatabase(database: Database, name: string): Promise<unknown> {
  return withClient(`${database.baseUrl}/postgres`, (client) =>
    client.query(`create database ${client.escapeIdentifier(name)}`),
  );
}

/** PostgreSQL's pause before each flush of its log, in microseconds, for every session from now on; 0 is the default. */
export async function setCommitDelay(database: Database, microseconds: number): Promise<void> {
  await withClient(`${database.baseUrl}/postgres`, async (client) => {
    await client.query(`alter system set commit_delay = ${microseconds}`);
    await client.query(`alter system set commit_siblings = ${microseconds === 0 ? 5 : 0}`);
    await client.query('select pg_reload_conf()');
  });
}

/** Median milliseconds of a lone commit, to see what a flush costs (or is made to cost). */
export async function commitMs(database: Database): Promise<number> {
  return withClient(`${database.baseUrl}/postgres`, async (client) => {
    await client.query('create table if not exists bench_commit (n int)');
    const samples: number[] = [];
    for (let index = 0; index < FLUSH_SAMPLES; index += 1) {
      const startedAt = performance.now();
      await client.query('insert into bench_commit values (1)');
      samples.push(performance.now() - startedAt);
    }
    return median(samples);
  });
}

export async function postgresVersion(database: Database): Promise<string> {
  return withClient(`${database.baseUrl}/postgres`, async (client) => {
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version ?? 'unknown';
  });
}

/** Median milliseconds to write and flush one 8 kB page where the database lives. */
export function diskFlushMs(directory: string): number {
  const file = openSync(join(directory, 'flush-probe'), 'w');
  const page = Buffer.alloc(WAL_PAGE_BYTES);
  const samples = Array.from({ length: FLUSH_SAMPLES }, () => {
    const startedAt = performance.now();
    writeSync(file, page, 0, page.length, 0);
    fdatasyncSync(file);
    return performance.now() - startedAt;
  });
  closeSync(file);
  return median(samples);
}

export interface Redis {
  readonly url: string;
  /** Undefined when `REDIS_URL` names a server that is not ours. */
  readonly process: BenchProcess | undefined;
}

export async function startRedis(directory: string): Promise<Redis> {
  if (process.env.REDIS_URL) return { url: process.env.REDIS_URL, process: undefined };
  if (spawnSync('redis-server', ['--version']).status !== 0) throw new Error(REDIS_HELP);
  const port = await freePort();
  const settings = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    directory,
  ];
  const started = startProcess({ name: 'redis', command: 'redis-server', args: settings, directory });
  return { url: `redis://127.0.0.1:${port}`, process: started };
}
