/**
 * One ordered shutdown per process: on SIGTERM or SIGINT the steps run in the order they were given, each bounded, and the
 * process ends within the platform's grace. A second signal ends it at once.
 */
import { describeDatabaseError } from './database-errors.ts';
import type { Logger } from './logger.ts';

export interface ShutdownStep {
  readonly name: string;
  readonly run: () => Promise<void> | void;
}

/** Platforms kill a process 30 s after SIGTERM; ours is gone in 25. */
const GRACE_MS = 25_000;

/**
 * Listens for the end of the process from its first moment: what comes before there is anything to stop is remembered. The
 * returned function says what there is to stop.
 */
function listenForStop(graceMs: number): (logger: Logger, steps: readonly ShutdownStep[]) => void {
  let reason: string | undefined;
  let stop: (() => void) | undefined;
  const onReason = (why: string): void => {
    if (reason !== undefined) process.exit(1); // asked twice
    reason = why;
    stop?.();
  };
  process.on('SIGTERM', onReason);
  process.on('SIGINT', onReason);
  // a child of `npm start` does not outlive it, however that ended
  process.once('disconnect', () => onReason('the parent process is gone'));
  return (logger, steps) => {
    stop = () => {
      logger.info({ reason }, 'stopping');
      setTimeout(() => {
        logger.error('did not stop in time');
        process.exit(1);
      }, graceMs).unref();
      void runSteps(logger, steps).then(() => process.exit(0));
    };
    if (reason !== undefined) stop();
  };
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
  const whenStopped = listenForStop(graceMs);
  try {
    const { logger, steps } = await start();
    whenStopped(logger, steps);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // of what a start connects to, the database alone leaves its errors as they are
    const said = code === undefined ? message : describeDatabaseError(error, process.env.DATABASE_URL);
    process.stderr.write(`${name}: ${said || code}\n`);
    process.exit(1);
  }
}
