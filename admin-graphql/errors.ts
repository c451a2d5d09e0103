/**
 * Errors of GraphQL operations: what the database raises on purpose is told with a code, and anything else is masked and
 * logged under an id. No statement, table, column or value of the database reaches a client.
 */
import { randomUUID } from 'node:crypto';
import { isSafeError } from 'postgraphile/grafast';
import { GraphQLError } from 'postgraphile/graphql';
import { isConnectionError } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import { Refusal, type RefusalCode } from './refusal.ts';

/** What the driver tells of an error of PostgreSQL. */
interface DatabaseError extends Error {
  readonly code: string;
  readonly constraint?: string;
  /** The C function that raised it; that of PL/pgSQL's RAISE means that the message is ours. */
  readonly routine?: string;
}

const RAISE_ROUTINE = 'exec_stmt_raise';
const SAFE_NAME = /^[a-z][a-z0-9_]*$/;

/** The SQLSTATEs that our functions raise (sql/functions) and what they mean to a client. */
const RAISED_CODES: Readonly<Record<string, RefusalCode>> = {
  P0002: 'not_found', // no_data_found
  '22023': 'invalid_parameter', // invalid_parameter_value
  '23514': 'refused', // check_violation
  '55000': 'invalid_state', // object_not_in_prerequisite_state
  '42501': 'forbidden', // insufficient_privilege
};

/** What a caller's value can be wrong in before any of our checks sees it. Other data exceptions are bugs of ours. */
const MALFORMED: ReadonlySet<string> = new Set([
  '22003', // numeric_value_out_of_range
  '22007', // invalid_datetime_format
  '22008', // datetime_field_overflow
  '22021', // character_not_in_repertoire
  '22P02', // invalid_text_representation
]);

export function makeMaskError(logger: Logger): (error: GraphQLError) => GraphQLError {
  return (error) => {
    const original = error.originalError;
    if (original === undefined || original === null || original instanceof GraphQLError) {
      return withCode(error, error.message, { code: 'invalid_request', ...error.extensions });
    }
    if (original instanceof Refusal) return withCode(error, original.message, original.extensions);
    if (isSafeError(original))
      return withCode(error, original.message, { code: 'invalid_request', ...original.extensions });
    const refusal = refusalOf(original);
    if (refusal !== undefined) return withCode(error, refusal.message, refusal.extensions);
    const errorId = randomUUID();
    logger.error({ err: original, errorId }, 'an operation failed');
    return withCode(error, `Something went wrong; the log has it under ${errorId}.`, {
      code: 'internal_error',
      errorId,
    });
  };
}

/** An expected error of the database as the client may see it; undefined for any other. */
export function refusalOf(error: Error): Refusal | undefined {
  if (!isDatabaseError(error)) {
    return isConnectionError(error) ? unavailable(error) : undefined;
  }
  const { code, constraint, routine } = error;
  if (constraint === 'increase_needs_seven_days_notice') {
    return new Refusal(error.message, { code: 'increase_needs_seven_days_notice', cause: error });
  }
  const raised = routine === RAISE_ROUTINE ? RAISED_CODES[code] : undefined;
  if (raised !== undefined) return new Refusal(error.message, { code: raised, cause: error });
  switch (code) {
    case '42501': // insufficient_privilege
    case '25006': // read_only_sql_transaction
      return new Refusal('This needs a token with the role operator.', { code: 'forbidden', cause: error });
    case '23514': // check_violation
      return new Refusal(`Refused: ${assertion(constraint)}.`, { code: 'invalid_parameter', cause: error });
    case '23502': // not_null_violation
      return new Refusal('Refused: a value that must be there is null.', {
        code: 'invalid_parameter',
        cause: error,
      });
    case '23503': // foreign_key_violation
      return new Refusal('Refused: it names something that does not exist.', {
        code: 'not_found',
        cause: error,
      });
    case '23505': // unique_violation
      return new Refusal(`Refused: ${assertion(constraint)}.`, { code: 'already_exists', cause: error });
    case '57014': // query_canceled
      return new Refusal('The database took too long; ask for less.', { code: 'timeout', cause: error });
  }
  if (MALFORMED.has(code)) {
    return new Refusal('A value does not have the form its type asks for.', {
      code: 'invalid_parameter',
      cause: error,
    });
  }
  return isConnectionError(error) ? unavailable(error) : undefined;
}

function unavailable(error: Error): Refusal {
  return new Refusal('The database cannot be reached; try again.', {
    code: 'unavailable',
    statusCode: 503,
    cause: error,
  });
}

/** Constraints are named as the assertion they make (conventions, 9): their names are sentences. */
function assertion(constraint: string | undefined): string {
  return constraint !== undefined && SAFE_NAME.test(constraint)
    ? constraint.replaceAll('_', ' ')
    : 'a rule of the database';
}

function isDatabaseError(error: Error): error is DatabaseError {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && 'severity' in error;
}

function withCode(
  error: GraphQLError,
  message: string,
  extensions: Readonly<Record<string, unknown>>,
): GraphQLError {
  const { statusCode: _statusCode, ...rest } = extensions;
  const { nodes, source, positions, path } = error;
  return new GraphQLError(message, {
    nodes: nodes ?? null,
    source: source ?? null,
    positions: positions ?? null,
    path: path ?? null,
    extensions: rest,
  });
}
