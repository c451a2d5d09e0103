/**
 * What an error of the ElevenLabs convention means. It is `{detail}`: an object with a `status` or `code` and a message, a list of
 * what is wrong with which field, or a sentence. Statuses alone say little: a used-up quota comes as 401, an unknown voice as 400.
 */
import {
  isObject,
  kindOfStatus,
  PARAM_CHARACTERS,
  PUBLIC_MESSAGE_CHARACTERS,
  parseRetryAfter,
  publicText,
} from '../openai/errors.ts';
import { ProviderError, type ProviderErrorKind } from '../provider.ts';

const KINDS: ReadonlyMap<string, ProviderErrorKind> = new Map([
  ['content_against_policy', 'moderated'],
  ['content_blocked', 'moderated'],
  ['content_moderated', 'moderated'],
  ['content_policy_violation', 'moderated'],
  ['moderation_blocked', 'moderated'],
  ['text_moderation_failed', 'moderated'],
  ['unsafe_content', 'moderated'],
  ['concurrent_limit_exceeded', 'unavailable'],
  ['rate_limit_exceeded', 'unavailable'],
  ['system_busy', 'unavailable'],
  ['too_many_concurrent_requests', 'unavailable'],
  // Our account's, not the caller's doing: another route may serve.
  ['detected_unusual_activity', 'misconfigured'],
  ['insufficient_credits', 'misconfigured'],
  ['invalid_api_key', 'misconfigured'],
  ['missing_permissions', 'misconfigured'],
  ['model_not_found', 'misconfigured'],
  ['model_can_not_do_text_to_speech', 'misconfigured'],
  ['model_deprecated', 'misconfigured'],
  ['only_for_creator+', 'misconfigured'],
  ['output_format_not_allowed', 'misconfigured'],
  ['quota_exceeded', 'misconfigured'],
  ['subscription_required', 'misconfigured'],
  ['voice_limit_reached', 'misconfigured'],
  ['voice_not_found', 'misconfigured'],
  ['voice_not_fine_tuned', 'misconfigured'],
]);

interface Detail {
  readonly codes: readonly unknown[];
  readonly message: unknown;
  readonly param: unknown;
}

/** For an answer that is not 200, or 200 and not what was asked for. `text` is its body, perhaps cut. */
export function answerError(
  status: number,
  headers: Readonly<Record<string, unknown>>,
  text: string,
  credential: string | undefined,
): ProviderError {
  const detail = detailOf(text);
  const kind = kindOf(status, detail);
  const words = `The provider answered ${status}${status === 200 ? ' without what was asked for' : ''}.`;
  if (kind !== 'rejected') {
    const retryAfterSeconds =
      kind === 'unavailable' ? parseRetryAfter(headers['retry-after'], Date.now()) : undefined;
    return new ProviderError(kind, words, { status, retryAfterSeconds });
  }
  return new ProviderError(kind, words, {
    status,
    publicMessage: publicText(detail?.message, PUBLIC_MESSAGE_CHARACTERS, credential),
    param: publicText(detail?.param, PARAM_CHARACTERS, credential),
  });
}

function kindOf(status: number, detail: Detail | undefined): ProviderErrorKind {
  for (const code of status < 500 ? (detail?.codes ?? []) : []) {
    const kind = typeof code === 'string' ? KINDS.get(code.toLowerCase()) : undefined;
    if (kind !== undefined) return kind;
  }
  return kindOfStatus(status, undefined);
}

function detailOf(text: string): Detail | undefined {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return undefined;
  }
  const detail = isObject(body) ? (body.detail ?? body) : undefined;
  if (typeof detail === 'string') return { codes: [], message: detail, param: undefined };
  if (isObject(detail))
    return { codes: [detail.status, detail.code, detail.type], message: detail.message, param: detail.param };
  const first: unknown = Array.isArray(detail) ? detail[0] : undefined;
  if (!isObject(first)) return undefined;
  const place: unknown = Array.isArray(first.loc) ? first.loc.at(-1) : undefined;
  return { codes: [first.type], message: first.msg, param: place };
}
