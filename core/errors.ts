/**
 * The one error catalogue: every code the service can answer with, its HTTP status, and its message in
 * English and Japanese. A handler throws `new ServiceError(code, extras)`; the ingress funnel turns it
 * into the envelope. Nothing else in the project writes an error body (the scope error is the
 * specification's one exception, see `ScopeError`).
 */
import { ERROR_CATALOGUE } from './error-catalogue.ts';

export type ErrorCode = keyof typeof ERROR_CATALOGUE;
export type Language = 'en' | 'ja';

/** Values that fill `{placeholders}` of a message and may appear beside `error` in the body. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** The `reason` of a `generation_failed` that another try will meet again: what came was more than is taken from a provider. */
export const ANSWER_TOO_LARGE = 'answer_too_large';

export class ServiceError extends Error {
  readonly code: ErrorCode;
  /** Sibling fields that stand beside `error` in the response body. */
  readonly details: ErrorDetails;
  /** Seconds for the `Retry-After` header, where waiting helps. */
  readonly retryAfterSeconds: number | undefined;
  readonly status: number;
  /** Trying again by itself is not what the caller wants, whatever the status suggests (`x-should-retry: false`). */
  readonly isFinal: boolean;

  constructor(
    code: ErrorCode,
    details: ErrorDetails = {},
    options: {
      cause?: unknown;
      retryAfterSeconds?: number;
      /** Instead of the catalogue's, where one code serves two. */
      status?: number;
      isFinal?: boolean;
    } = {},
  ) {
    super(code, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ServiceError';
    this.code = code;
    this.details = details;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.status = options.status ?? ERROR_CATALOGUE[code].status;
    this.isFinal = options.isFinal ?? false;
  }
}

/** The specification's differently shaped 403: `error` is a plain string. */
export class ScopeError extends Error {
  readonly requiredScope: string;
  readonly currentScopes: readonly string[];

  constructor(requiredScope: string, currentScopes: readonly string[]) {
    super(`API key does not have required scope: ${requiredScope}`);
    this.name = 'ScopeError';
    this.requiredScope = requiredScope;
    this.currentScopes = currentScopes;
  }
}

/** The catalogue's message for a code, placeholders filled from `details`. */
export function errorMessage(code: ErrorCode, language: Language, details: ErrorDetails = {}): string {
  const template = ERROR_CATALOGUE[code][language];
  return template.replace(/\{(\w+)\}/g, (whole, name: string) =>
    name in details ? String(details[name]) : whole,
  );
}

/** The JSON envelope for an error code: `{error: {code, message}, ...siblings}`. */
export function errorBody(
  code: ErrorCode,
  language: Language,
  details: ErrorDetails = {},
): Record<string, unknown> {
  return { error: { code, message: errorMessage(code, language, details) }, ...details };
}

/** Whether a string is a code of the catalogue (an error code read back from the database). */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CATALOGUE, code);
}
