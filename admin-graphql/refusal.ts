/** What the admin server refuses, and how it says so: every error of a response carries a code in `extensions.code`. */

export type RefusalCode =
  | 'not_authenticated'
  | 'invalid_operator_token'
  | 'operator_token_revoked'
  | 'forbidden'
  | 'invalid_request'
  | 'query_too_large'
  | 'invalid_parameter'
  | 'not_found'
  | 'method_not_allowed'
  | 'already_exists'
  | 'invalid_state'
  | 'increase_needs_seven_days_notice'
  | 'refused'
  | 'timeout'
  | 'unavailable'
  | 'internal_error';

export interface RefusalExtensions {
  readonly code: RefusalCode;
  /** The HTTP status, where the whole request is refused. */
  readonly statusCode?: number;
  readonly [name: string]: unknown;
}

export interface RefusalOptions {
  readonly code: RefusalCode;
  /** The HTTP status, where the whole request is refused. */
  readonly statusCode?: number;
  readonly cause?: unknown;
  /** What else the client is told beside the code. */
  readonly details?: Readonly<Record<string, unknown>>;
}

export class Refusal extends Error {
  readonly extensions: RefusalExtensions;

  constructor(message: string, { code, statusCode, cause, details }: RefusalOptions) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'Refusal';
    this.extensions = { code, ...(statusCode === undefined ? {} : { statusCode }), ...details };
  }
}

/** The body of a refused HTTP request: the shape GraphQL clients show, whatever the path. */
export function refusalBody(refusal: Refusal): Record<string, unknown> {
  const { statusCode: _statusCode, ...extensions } = refusal.extensions;
  return { errors: [{ message: refusal.message, extensions }] };
}
