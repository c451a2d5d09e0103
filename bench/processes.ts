/**
 * Every child process of a run: started with its output in a file, and stopped again whatever happens
 * (end, failure, Ctrl-C). Nothing that this module did not start is ever signalled.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';

const KILL_AFTER_MS = 25_000;
const MAX_LOG_BYTES = 256 * 1024 * 1024;
const LOG_TAIL_LINES = 25;

export interface BenchProcess {
  readonly name: string;
  readonly pid: number;
  readonly child: ChildProcess;
  readonly logFile: string;
}

export interface StartOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly directory: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

const running = new Set<BenchProcess>();

const PASSED_ON = ['PATH', 'HOME', 'USER', 'TMPDIR', 'LANG', 'TZ'];

/** Only what a program needs to run at all: no setting of the caller's shell configures what is measured. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    PASSED_ON.map((name) => [name, process.env[name]]).filter(([, value]) => value !== undefined),
  );
}

function track(options: StartOptions, child: ChildProcess, logFile: string): BenchProcess {
  if (child.pid === undefined) throw new Error(`${options.name} could not be started: ${options.command}`);
  const started: BenchProcess = { name: options.name, pid: child.pid, child, logFile };
  running.add(started);
  child.once('exit', () => running.delete(started));
  return started;
}

/** Starts a program with its output appended to `directory/name.log`. */
export function startProcess(options: StartOptions): BenchProcess {
  const logFile = join(options.directory, `${options.name}.log`);
  const log = openSync(logFile, 'a');
  const child = spawn(options.command, options.args, {
    env: { ...cleanEnvironment(), ...options.env },
    stdio: ['ignore', log, log],
    // A session of its own: Ctrl-C in the terminal reaches the bench alone, which then stops the rest in order.
    detached: true,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  child.once('error', () => undefined);
  closeSync(log);
  return track(options, child, logFile);
}

/** Forks a module of the bench itself, with an IPC channel; resolves with its first message. */
export async function forkModule(
  options: Pick<StartOptions, 'name' | 'args' | 'directory' | 'env'> & { readonly modulePath: URL },
): Promise<{ process: BenchProcess; firstMessage: unknown }> {
  const logFile = join(options.directory, `${options.name}.log`);
  const log = openSync(logFile, 'a');
  const child = fork(options.modulePath, options.args, {
    env: { ...cleanEnvironment(), ...options.env },
    execArgv: [],
    stdio: ['ignore', log, log, 'ipc'],
    detached: true,
  });
  closeSync(log);
  const started = track({ ...options, command: options.modulePath.pathname }, child, logFile);
  const firstMessage = await nextMessage(started);
  return { process: started, firstMessage };
}

/** The next IPC message of a forked module; rejects when it exits first. */
export function nextMessage(from: BenchProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = () => reject(new Error(`${from.name} stopped unexpectedly\n${logTail(from)}`));
    from.child.once('exit', onExit);
    from.child.once('message', (message) => {
      from.child.off('exit', onExit);
      resolve(message);
    });
  });
}

export function isRunning(candidate: BenchProcess): boolean {
  return candidate.child.exitCode === null && candidate.child.signalCode === null;
}

export function logTail(of: BenchProcess): string {
  const lines = readFileSync(of.logFile, 'utf8').trimEnd().split('\n');
  return lines.slice(-LOG_TAIL_LINES).join('\n');
}

/** Keeps request logs from filling the disk; the files are open for appending, so a cut is safe. */
export function trimLogs(): void {
  for (const { logFile } of running) if (statSync(logFile).size > MAX_LOG_BYTES) truncateSync(logFile, 0);
}

/** Asks a process to stop and waits for it; kills it when it does not. Returns the milliseconds it took. */
export async function stopProcess(
  candidate: BenchProcess,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<number> {
  const startedAt = performance.now();
  if (!isRunning(candidate)) return 0;
  const exited = new Promise<void>((resolve) => candidate.child.once('exit', () => resolve()));
  candidate.child.kill(signal);
  const timer = setTimeout(() => candidate.child.kill('SIGKILL'), KILL_AFTER_MS);
  await exited;
  clearTimeout(timer);
  return performance.now() - startedAt;
}

/** Stops everything, last started first, so that a service ends before the database below it. */
export async function stopAllProcesses(): Promise<void> {
  for (const candidate of [...running].toReversed()) {
    await stopProcess(candidate);
  }
}

/** Last resort when the bench exits early; a forked module ends by itself, in order, when its channel closes. */
process.once('exit', () => {
  for (const { child } of running) if (!child.connected) child.kill('SIGKILL');
});
