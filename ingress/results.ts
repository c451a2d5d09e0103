/**
 * How a finished request that did not succeed is said to its caller.
 */
import { type ErrorDetails, isErrorCode, ServiceError } from '../core/errors.ts';

export function errorOf(finished: {
  readonly state: string;
  readonly errorCode?: string | null;
  readonly errorDetails?: ErrorDetails | null;
}): ServiceError {
  const code = finished.errorCode;
  if (code != null && isErrorCode(code)) {
    return new ServiceError(
      code,
      finished.errorDetails ?? {},
      code === 'generation_failed' ? { retryAfterSeconds: 1 } : {},
    );
  }
  // cancelled by the caller or an operator: whoever waited for it need not try again
  return new ServiceError('generation_failed', { status: finished.state }, { isFinal: true });
}
