/**
 * A Redis for tests in which Redis is the subject: a private server (loopback, ephemeral port, nothing on disk), else the one
 * of REDIS_URL. Where there is neither, the test skips itself with a printed note, or fails when SVC_TEST_NO_SKIP is 1.
 *
 *   const redis = await startRedis();
 *   if (redis === undefined) this.skip();
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../bin/embedded-postgres.ts';

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** Changes with `restart`; undefined for a server of REDIS_URL, which is not ours to end. */
  readonly pid: number | undefined;
  /** In good order. */
  stop(): Promise<void>;
  /** At once, as a crash would. */
  kill(): Promise<void>;
  /** On the same port, empty; ends it first where it runs. */
  restart(): Promise<void>;
}

/** From the PATH: no package of npm brings it. */
const REDIS_SERVER = 'redis-server';
const START_TIMEOUT_MS = 10_000;
const POLL_MS = 5;

export async function startRedis(): Promise<TestRedis | undefined> {
  const port = await freePort();
  let server = await launch(port);
  if (server === undefined) return borrowed();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = server;
    server = undefined;
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = once(ending, 'exit');
    ending.kill(signal);
    await exited;
  };
  process.once('exit', () => server?.kill('SIGKILL'));
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return server?.pid;
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    async restart() {
      await end('SIGKILL');
      server = await launch(port);
    },
  };
}

/** Undefined where the machine has no redis-server. */
async function launch(port: number): Promise<ChildProcess | undefined> {
  const server = spawn(
    REDIS_SERVER,
    [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', tmpdir()],
      ...['--save', '', '--appendonly', 'no', '--loglevel', 'warning'],
    ],
    { stdio: 'ignore' },
  );
  let failure: NodeJS.ErrnoException | undefined;
  server.on('error', (error) => {
    failure = error;
  });
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline) {
    if (failure?.code === 'ENOENT') return undefined;
    if (failure !== undefined) throw failure;
    if (server.exitCode !== null) throw new Error(`redis-server ended with ${server.exitCode}`);
    if (await answersPing(port)) return server;
    await sleep(POLL_MS);
  }
  server.kill('SIGKILL');
  throw new Error('redis-server did not start');
}

function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.once('data', (data) => {
      socket.destroy();
      resolve(data.toString().startsWith('+PONG'));
    });
    socket.once('error', () => resolve(false));
  });
}

function borrowed(): TestRedis | undefined {
  const url = process.env.REDIS_URL;
  if (url !== undefined && url !== '') {
    const notOurs = () => Promise.reject(new Error('the Redis of REDIS_URL is not ours to end'));
    return {
      url,
      port: Number(new URL(url).port || 6379),
      pid: undefined,
      stop: () => Promise.resolve(),
      kill: notOurs,
      restart: notOurs,
    };
  }
  const note = 'no redis-server on this machine and no REDIS_URL';
  if (process.env.SVC_TEST_NO_SKIP === '1') throw new Error(note);
  process.stderr.write(`      ${note}: skipped\n`);
  return undefined;
}
