/**
 * How a finished request that did not succeed is said to its caller, and one that could not be finished now.
 */
import { isTimeoutError, wasNeverSent } from '../core/database.ts';
import {
  ANSWER_TOO_LARGE,
  type ErrorDetails,
  errorBody,
  isErrorCode,
  type Language,
  ServiceError,
} from '../core/errors.ts';

interface Finished {
  readonly state: string;
  readonly errorCode?: string | null;
  readonly errorDetails?: ErrorDetails | null;
}

/**
 * The error where it is part of an answer that tells how a request went. To have been cancelled is none: the state says so, and
 * nothing is to be tried again.
 */
export function errorView(finished: Finished, language: Language): Record<string, unknown> {
  if (finished.state === 'cancelled' && finished.errorCode == null) return {};
  const error = errorOf(finished);
  return errorBody(error.code, language, error.details);
}

export function errorOf(finished: Finished): ServiceError {
  const code = finished.errorCode;
  if (code != null && isErrorCode(code)) {
    const details = finished.errorDetails ?? {};
    if (code !== 'generation_failed') return new ServiceError(code, details);
    const isFinal = details.reason === ANSWER_TOO_LARGE;
    return new ServiceError(code, details, isFinal ? { isFinal } : { retryAfterSeconds: 1 });
  }
  // cancelled by the caller or an operator: whoever waited for it need not try again
  return new ServiceError('generation_failed', { status: finished.state }, { isFinal: true });
}

/**
 * Of what a call that locks a balance throws: one that stays locked is told as what is to be tried later, and so is having waited in
 * vain for a connection behind those that wait for it.
 */
export function whenLocked(error: unknown): unknown {
  return isTimeoutError(error) || isCrowded(error)
    ? new ServiceError('generation_failed', {}, { cause: error, retryAfterSeconds: 2 })
    : error;
}

/** The pool's own word, which has no code: those of the network have one. */
function isCrowded(error: unknown): boolean {
  return wasNeverSent(error) && (error as { code?: unknown }).code === undefined;
}
