/**
 * One ordered shutdown per process: on SIGTERM or SIGINT the steps run in the order they were given, each bounded, and the
 * process ends within the platform's grace. A second signal ends it at once.
 */
import type { Logger } from './logger.ts';

export interface ShutdownStep {
  readonly name: string;
  readonly run: () => Promise<void> | void;
}

/** Platforms kill a process 30 s after SIGTERM; ours is gone in 25. */
const GRACE_MS = 25_000;

function stopOnSignals(logger: Logger, steps: readonly ShutdownStep[], graceMs: number): void {
  let isStopping = false;
  const stop = (reason: string): void => {
    if (isStopping) process.exit(1);
    isStopping = true;
    logger.info({ reason }, 'stopping');
    setTimeout(() => {
      logger.error('did not stop in time');
      process.exit(1);
    }, graceMs).unref();
    void runSteps(logger, steps).then(() => process.exit(0));
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  // a child of `npm start` does not outlive it, however that ended
  if (process.connected) process.on('disconnect', () => stop('the parent process is gone'));
}

/** Runs every step even when one fails. */
async function runSteps(logger: Logger, steps: readonly ShutdownStep[]): Promise<void> {
  for (const step of steps) {
    try {
      await step.run();
    } catch (error) {
      logger.error({ err: error, step: step.name }, 'a step of the shutdown failed');
    }
  }
}

/** Runs a process's start; a failure is one line on stderr and exit code 1. */
export async function runProcess(
  name: string,
  start: () => Promise<{ logger: Logger; steps: readonly ShutdownStep[] }>,
  graceMs = GRACE_MS,
): Promise<void> {
  // the parent may be gone before there is anything to stop
  const orphaned = (): never => process.exit(1);
  process.once('disconnect', orphaned);
  try {
    const { logger, steps } = await start();
    process.off('disconnect', orphaned);
    stopOnSignals(logger, steps, graceMs);
  } catch (error) {
    process.stderr.write(`${name}: ${(error as Error).message || (error as { code?: string }).code}\n`);
    process.exit(1);
  }
}
