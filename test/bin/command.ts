/** Runs a script of bin/ as a process of its own, with an environment that holds what the test gives and nothing else. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

export interface Finished {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function run(
  script: 'svc' | 'release',
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Finished> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [join(ROOT, 'bin', `${script}.ts`), ...args],
      { cwd: ROOT, env: { PATH: process.env.PATH, DATA_DIR: '/nonexistent', ...env }, timeout: 15_000 },
      (error, stdout, stderr) => resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** The one JSON object on the one line that a command printed. */
export function printedObject({ stdout, stderr }: Finished): Record<string, unknown> {
  if (!/^\{[^\n]*\}\n$/.test(stdout)) throw new Error(`not one object on one line: ${stdout}${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}
