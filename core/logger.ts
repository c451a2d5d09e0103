/**
 * Structured logs, one JSON object a line. What may be logged is ids, codes, counts and times: never a prompt, an answer, a
 * key or a person's data. `redact` is the last resort, not the rule.
 */
import { type Logger as PinoLogger, pino } from 'pino';

export type Logger = PinoLogger;

export function makeLogger(name: string, level: string): Logger {
  return pino({
    name,
    level,
    redact: ['*.authorization', '*.secret', '*.password', '*.credential', '*.api_key', 'headers'],
    serializers: { err: safeError },
  });
}

/** An error without what drivers hang on it: `detail` and `where` of a database error can quote a row. */
function safeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  const { code } = error as { code?: unknown };
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: safeError(error.cause) }),
  };
}
