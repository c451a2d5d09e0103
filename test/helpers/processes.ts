/**
 * The service as it is deployed, in real processes: webs, workers, a PostgreSQL and a Redis of its own, each under a small
 * supervisor that starts it again a second after it ended, as a platform would. For tests that end processes.
 *
 *   const stack = await startStack({ webs: 2, workers: 2 });
 *   await stack.workers[0].kill();          // SIGKILL; it is started again by itself
 *   await stack.webs[0].terminate();        // SIGTERM; says how it ended; started again too
 *   await stack.postgres.kill();            // the postmaster and all its children at once
 *   await stack.stop();
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../bin/embedded-postgres.ts';
import { migrate } from '../../bin/migrate.ts';
import { makePool, type Pool } from '../../core/database.ts';
import { startRedis, type TestRedis } from './redis.ts';

const ROOT_DIRECTORY = join(import.meta.dirname, '..', '..');
/** What a platform's process manager takes to notice and start again. */
const RESTART_DELAY_MS = 1000;
/** A process that has not stopped by then is killed. */
const STOP_TIMEOUT_MS = 30_000;
const HEALTHY_TIMEOUT_MS = 60_000;
const POLL_MS = 25;
const DATABASE_NAME = 'svc';
const PASSED_ON = ['PATH', 'HOME', 'USER', 'TMPDIR', 'LANG', 'TZ'];

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** From the signal, or the start, to the end. */
  readonly tookMs: number;
}

export interface FinishedProcess extends ProcessExit {
  readonly stdout: string;
  readonly stderr: string;
}

/** Nothing of the test's own environment configures the service. */
function cleanEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const passedOn = PASSED_ON.map((name) => [name, process.env[name]] as const);
  return { ...Object.fromEntries(passedOn.filter(([, value]) => value !== undefined)), ...env };
}

/** Runs a module of the project to its end. */
export async function runToEnd(
  modulePath: string,
  env: NodeJS.ProcessEnv,
  args: readonly string[] = [],
): Promise<FinishedProcess> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [modulePath, ...args], {
    cwd: ROOT_DIRECTORY,
    env: cleanEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (...ending) => resolve(ending));
  });
  clearTimeout(timer);
  return { ...said, code, signal, tookMs: performance.now() - startedAt };
}

export interface SupervisedOptions {
  readonly name: string;
  readonly modulePath: string;
  readonly env: NodeJS.ProcessEnv;
  readonly directory: string;
}

/** One process of ours that is started again whenever it ends, until it is stopped. */
export class Supervised {
  readonly name: string;
  /** Every end so far that was neither asked for with `kill` nor with `terminate`. */
  readonly unexpectedExits: ProcessExit[] = [];
  starts = 0;
  readonly #options: SupervisedOptions;
  readonly #logFile: string;
  #child: ChildProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  #isStopped = false;
  #isEndingWanted = false;

  constructor(options: SupervisedOptions) {
    this.name = options.name;
    this.#options = options;
    this.#logFile = join(options.directory, `${options.name}.log`);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  start(): void {
    const startedAt = performance.now();
    const log = openSync(this.#logFile, 'a');
    // a title of its own: whoever ends processes of ours by their command line does not mean these
    const child = spawn(process.execPath, [`--title=svc-test-${this.name}`, this.#options.modulePath], {
      cwd: ROOT_DIRECTORY,
      env: cleanEnvironment(this.#options.env),
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.#child = child;
    this.#isEndingWanted = false;
    this.starts += 1;
    child.once('exit', (code, signal) => {
      this.#child = undefined;
      if (!this.#isEndingWanted)
        this.unexpectedExits.push({ code, signal, tookMs: performance.now() - startedAt });
      if (!this.#isStopped) this.#restart = setTimeout(() => this.start(), RESTART_DELAY_MS);
    });
  }

  /** Without ending it: SIGSTOP, SIGCONT. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  kill(): Promise<ProcessExit> {
    return this.#end('SIGKILL');
  }

  terminate(): Promise<ProcessExit> {
    return this.#end('SIGTERM');
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#restart);
    await this.terminate();
  }

  /** When the test process itself ends. */
  killNow(): void {
    this.#isStopped = true;
    clearTimeout(this.#restart);
    this.#child?.kill('SIGKILL');
  }

  logTail(lines = 15): string {
    return readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  }

  async #end(signal: NodeJS.Signals): Promise<ProcessExit> {
    const child = this.#child;
    if (child === undefined) return { code: null, signal: null, tookMs: 0 };
    this.#isEndingWanted = true;
    const startedAt = performance.now();
    const ended = new Promise<ProcessExit>((resolve) => {
      child.once('exit', (code, endedBy) =>
        resolve({ code, signal: endedBy, tookMs: performance.now() - startedAt }),
      );
    });
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    const exit = await ended;
    clearTimeout(timer);
    return exit;
  }
}

/** PostgreSQL with its default durability (fsync on), always on the same folder and port. */
export class SupervisedPostgres {
  readonly #directory: string;
  readonly #port: number;
  #server: EmbeddedPostgres;

  private constructor(directory: string, port: number, server: EmbeddedPostgres) {
    this.#directory = directory;
    this.#port = port;
    this.#server = server;
  }

  static async start(directory: string): Promise<SupervisedPostgres> {
    const port = await quietPort();
    return new SupervisedPostgres(directory, port, await launch(directory, port));
  }

  get url(): string {
    return this.#server.url;
  }

  /** As a crash would: the postmaster and every backend at once. Resolves when it is up again, a second later. */
  async kill(downMs: number = RESTART_DELAY_MS): Promise<void> {
    const { pid } = this.#server;
    const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ');
    tryKill(pid);
    for (const child of children) tryKill(Number(child));
    await until(() => [pid, ...children.map(Number)].every((one) => !isAlive(one)), 5000);
    await sleep(downMs);
    this.#server = await launch(this.#directory, this.#port);
  }

  /** In good order, and started again after a while. */
  async stopFor(ms: number): Promise<void> {
    await this.#server.stop();
    await sleep(ms);
    this.#server = await launch(this.#directory, this.#port);
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  killNow(): void {
    tryKill(this.#server.pid, 'SIGQUIT');
  }
}

function launch(directory: string, port: number): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ dataDir: directory, database: DATABASE_NAME, port });
}

/** Redis, started again a second after it was killed, empty. */
export class SupervisedRedis {
  readonly #server: TestRedis;

  constructor(server: TestRedis) {
    this.#server = server;
  }

  get url(): string {
    return this.#server.url;
  }

  async kill(): Promise<void> {
    await this.#server.kill();
    await sleep(RESTART_DELAY_MS);
    await this.#server.restart();
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }
}

export interface Stack {
  readonly postgres: SupervisedPostgres;
  readonly redis: SupervisedRedis;
  readonly webs: readonly Supervised[];
  readonly workers: readonly Supervised[];
  /** Of the webs, in their order. */
  readonly origins: readonly string[];
  /** As the database's owner. */
  readonly pool: Pool;
  stop(): Promise<void>;
}

export interface StackOptions {
  readonly webs: number;
  readonly workers: number;
  readonly env?: NodeJS.ProcessEnv;
  /** Fills the migrated database before any process of ours starts. */
  readonly prepare: (pool: Pool) => Promise<void>;
}

/** Undefined where the machine has no redis-server that we may end. Resolves when every web is healthy. */
export async function startStack(options: StackOptions): Promise<Stack | undefined> {
  const redisServer = await startRedis();
  if (redisServer?.pid === undefined) return undefined;
  const redis = new SupervisedRedis(redisServer);
  // the name that test/helpers/hooks.ts cleans up after a run that was killed outright
  const directory = await mkdtemp(join(tmpdir(), `svc-test-${process.pid}-`));
  await chmod(directory, 0o755); // PostgreSQL, which refuses to be root, must be able to enter
  const postgres = await SupervisedPostgres.start(directory);
  const processes: Supervised[] = [];
  const killNow = (): void => {
    for (const one of processes) one.killNow();
    postgres.killNow();
  };
  process.once('exit', killNow);

  await migrate(postgres.url);
  const pool = await makePool({
    databaseUrl: postgres.url,
    applicationName: 'svc-test',
    maxConnections: 8,
    onError: () => {}, // the test ends PostgreSQL: its queries say so
  });
  await options.prepare(pool);

  const env = {
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    DATA_DIR: directory,
    ...options.env,
  };
  const supervise = (name: string, modulePath: string, extra: NodeJS.ProcessEnv = {}): Supervised => {
    const supervised = new Supervised({ name, modulePath, env: { ...env, ...extra }, directory });
    processes.push(supervised);
    supervised.start();
    return supervised;
  };
  const origins: string[] = [];
  const webs: Supervised[] = [];
  const workers: Supervised[] = [];
  for (let n = 1; n <= options.workers; n += 1)
    workers.push(supervise(`worker-${n}`, join('workers', 'index.ts')));
  for (let n = 1; n <= options.webs; n += 1) {
    const port = await quietPort();
    origins.push(`http://127.0.0.1:${port}`);
    webs.push(supervise(`web-${n}`, join('ingress', 'index.ts'), { PORT: String(port) }));
  }
  const stack: Stack = {
    postgres,
    redis,
    webs,
    workers,
    origins,
    pool,
    async stop() {
      await Promise.all(webs.map((one) => one.stop()));
      await Promise.all(workers.map((one) => one.stop()));
      await pool.end();
      await redis.stop();
      await postgres.stop();
      process.off('exit', killNow);
      await rm(directory, { recursive: true, force: true });
    },
  };
  try {
    await until(() => areHealthy(origins), HEALTHY_TIMEOUT_MS);
    await until(async () => (await countWorkers(pool)) === options.workers, HEALTHY_TIMEOUT_MS);
  } catch (error) {
    const logs = processes.map((one) => `${one.name}:\n${one.logTail()}`).join('\n');
    await stack.stop();
    throw new Error(`the service did not become healthy\n${logs}`, { cause: error });
  }
  return stack;
}

async function countWorkers(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    "select count(*) from app.processes where kind = 'worker'",
  );
  return rows[0]?.count ?? 0;
}

export async function areHealthy(origins: readonly string[]): Promise<boolean> {
  const answers = await Promise.all(
    origins.map((origin) =>
      fetch(`${origin}/health`, { signal: AbortSignal.timeout(5000) }).then(
        async (response) => {
          await response.arrayBuffer();
          return response.ok;
        },
        () => false,
      ),
    ),
  );
  return answers.every(Boolean);
}

/** Polls a condition; a check that throws has not come true. Resolves with the milliseconds it took. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs: number,
  what = 'the condition',
): Promise<number> {
  const startedAt = performance.now();
  let lastError: unknown;
  while (performance.now() - startedAt < timeoutMs) {
    try {
      if (await condition()) return performance.now() - startedAt;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    await sleep(POLL_MS);
  }
  throw new Error(`${what} did not come true within ${timeoutMs} ms`, { cause: lastError });
}

/** A port outside the range that outgoing connections take theirs from, so that it is still free after a restart. */
async function quietPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

function tryKill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal);
  } catch {
    // already gone
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
