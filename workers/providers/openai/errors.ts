/**
 * What an upstream's error means, in our five kinds. Messages here are ours, made of the status alone: an upstream's own
 * words may repeat a prompt or a credential, so they stand only in `publicMessage`, and only where the request is at fault.
 */
import { ProviderError, type ProviderErrorKind } from '../provider.ts';

export const PUBLIC_MESSAGE_CHARACTERS = 300;
export const PARAM_CHARACTERS = 100;
const MAX_RETRY_AFTER_SECONDS = 24 * 60 * 60;

const UNAVAILABLE_STATUSES: ReadonlySet<number> = new Set([408, 409, 425, 429]);
const REJECTED_STATUSES: ReadonlySet<number> = new Set([400, 413, 422]);

/** `code` or `type` values by which servers of the convention say that their safety system declined. */
const MODERATION_CODES: ReadonlySet<string> = new Set([
  'content_filter',
  'content_policy',
  'content_policy_violation',
  'content_moderated',
  'content_moderation',
  'content_blocked',
  'moderation',
  'moderated',
  'moderation_blocked',
  'policy_violation',
  'prompt_blocked',
  'responsible_ai_policy_violation',
  'responsibleaipolicyviolation',
  'safety',
  'safety_violation',
]);

type ErrorObject = Readonly<Record<string, unknown>>;

/** The error for an answer whose status is not 200. `text` is its body, perhaps cut. */
export function statusError(
  status: number,
  headers: Readonly<Record<string, unknown>>,
  text: string,
  credential: string | undefined,
): ProviderError {
  const error = errorObjectOf(text);
  const kind = kindOfStatus(status, error);
  const retryAfterSeconds =
    kind === 'unavailable' ? parseRetryAfter(headers['retry-after'], Date.now()) : undefined;
  if (kind !== 'rejected')
    return new ProviderError(kind, `The provider answered ${status}.`, { status, retryAfterSeconds });
  return new ProviderError(kind, `The provider answered ${status}.`, {
    status,
    publicMessage: publicText(error?.message, PUBLIC_MESSAGE_CHARACTERS, credential),
    param: publicText(error?.param, PARAM_CHARACTERS, credential),
  });
}

/** The error for an answer that should have been bytes and is JSON, or not 200; undefined: it is neither. */
export function answerError(
  status: number,
  headers: Readonly<Record<string, unknown>>,
  text: string,
  credential: string | undefined,
): ProviderError | undefined {
  if (status !== 200) return statusError(status, headers, text, credential);
  const error = errorObjectOf(text);
  return error?.message === undefined ? undefined : eventError(error);
}

/** The error for an `error` object that came under status 200: in a stream, or as a whole answer. */
export function eventError(error: unknown): ProviderError {
  const object = isObject(error) ? error : undefined;
  return isModeration(object)
    ? new ProviderError('moderated', 'The provider declined in its answer.')
    : new ProviderError('unavailable', 'The provider reported an error in its answer.');
}

export function kindOfStatus(status: number, error: ErrorObject | undefined): ProviderErrorKind {
  if (status >= 500 || UNAVAILABLE_STATUSES.has(status)) return 'unavailable';
  if (status >= 400 && isModeration(error)) return 'moderated';
  if (REJECTED_STATUSES.has(status)) return 'rejected';
  // 2xx and 3xx that are not the answer asked for: a redirect is a wrong base address, the rest a broken server.
  if (status >= 200 && status < 300) return 'invalid_response';
  return 'misconfigured';
}

function isModeration(error: ErrorObject | undefined): boolean {
  if (error === undefined) return false;
  const inner = isObject(error.innererror) ? error.innererror : undefined;
  return [error.code, error.type, inner?.code].some(
    (code) => typeof code === 'string' && MODERATION_CODES.has(code.toLowerCase()),
  );
}

function errorObjectOf(text: string): ErrorObject | undefined {
  try {
    const body: unknown = JSON.parse(text);
    if (!isObject(body)) return undefined;
    if (isObject(body.error)) return body.error;
    // Some servers of the convention put the fields, or a bare string, at the top.
    return typeof body.error === 'string' ? { message: body.error, ...body } : body;
  } catch {
    return undefined;
  }
}

export function publicText(
  value: unknown,
  limit: number,
  credential: string | undefined,
): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  if (credential !== undefined && value.includes(credential)) return undefined;
  // Control characters would break a log line or a terminal.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  return value.replace(/[\u0000-\u001f\u007f]+/g, ' ').slice(0, limit);
}

/** RFC 9110 `Retry-After`: seconds or a date; rounded up, never negative, at most a day. */
export function parseRetryAfter(value: unknown, nowMs: number): number | undefined {
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : (Date.parse(text) - nowMs) / 1000;
  if (!Number.isFinite(seconds)) return undefined;
  return Math.min(Math.max(Math.ceil(seconds), 0), MAX_RETRY_AFTER_SECONDS);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
