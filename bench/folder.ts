/** A program of the benchmark in a temporary folder of its own, and how it ends: with everything stopped, also after Ctrl-C. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stopAllProcesses } from './processes.ts';

const EXIT_CODE_INTERRUPTED = 130;
export const EXIT_CODE_FAILED = 1;

/** Ends the process with what `main` resolves to. After a failure the folder stays, for its logs. */
export function runInFolder(main: (directory: string) => Promise<number>, say: (line: string) => void): void {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  // PostgreSQL does not run as root: its user must be able to enter the folder.
  chmodSync(directory, 0o755);

  let isEnding = false;
  async function end(exitCode: number): Promise<void> {
    if (isEnding) return;
    isEnding = true;
    await stopAllProcesses();
    if (exitCode === EXIT_CODE_FAILED) say(`logs kept in ${directory}`);
    else rmSync(directory, { recursive: true, force: true });
    process.exit(exitCode);
  }

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      say(`${signal}: stopping everything`);
      void end(EXIT_CODE_INTERRUPTED);
    });
  }

  main(directory).then(
    (exitCode) => end(exitCode),
    (error: unknown) => {
      if (!isEnding) console.error(error instanceof Error ? error.message : error);
      return end(EXIT_CODE_FAILED);
    },
  );
}
