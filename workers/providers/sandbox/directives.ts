/**
 * `[[sandbox:…]]` in the last user message, or in a prompt, makes the sandbox slow or fail, so that developers can try their error handling
 * with a test key. docs/sandbox.md is the list for users; keep both alike.
 */
import { ProviderError, type ProviderErrorKind } from '../provider.ts';

export const MAX_DELAY_MS = 120_000;
export const MAX_WORDS = 10_000;

export interface Directives {
  /** Before the answer, or the first chunk. */
  readonly delayMs: number;
  readonly error: ProviderErrorKind | undefined;
  /** Break off in the middle. */
  readonly cut: boolean;
  /** Answer this many words. */
  readonly words: number | undefined;
  /** Report no usage, as some servers do. */
  readonly noUsage: boolean;
  /** The text without the directives. */
  readonly text: string;
}

const ERROR_KINDS: ReadonlySet<string> = new Set<ProviderErrorKind>([
  'unavailable',
  'moderated',
  'rejected',
  'misconfigured',
  'invalid_response',
]);

/** `param`: the field that holds the text. */
export function parseDirectives(message: string, param = 'messages'): Directives {
  let delayMs = 0;
  let error: ProviderErrorKind | undefined;
  let cut = false;
  let words: number | undefined;
  let noUsage = false;
  const text = message.replace(
    /\[\[sandbox:(\w+)(?:=(\w+))?\]\]/g,
    (whole, name: string, value: string | undefined) => {
      if (name === 'delay') delayMs = Math.min(wholeNumber(whole, value, param), MAX_DELAY_MS);
      else if (name === 'words') words = Math.min(wholeNumber(whole, value, param), MAX_WORDS);
      else if (name === 'cut') cut = true;
      else if (name === 'no_usage') noUsage = true;
      else if (name === 'error' && value !== undefined && ERROR_KINDS.has(value))
        error = value as ProviderErrorKind;
      else throw unknownDirective(whole, param);
      return '';
    },
  );
  return { delayMs, error, cut, words, noUsage, text: text.trim() };
}

export function directedError(kind: ProviderErrorKind): ProviderError {
  return new ProviderError(kind, 'The sandbox was asked to fail.', {
    retryAfterSeconds: kind === 'unavailable' ? 1 : undefined,
    publicMessage:
      kind === 'rejected' ? '[sandbox] This request was rejected because it asked for it.' : undefined,
  });
}

export function cutError(): ProviderError {
  return new ProviderError('invalid_response', 'The sandbox was asked to break off.');
}

function wholeNumber(directive: string, value: string | undefined, param: string): number {
  if (value === undefined || !/^\d{1,9}$/.test(value)) throw unknownDirective(directive, param);
  return Number(value);
}

/** A misspelt directive is told rather than answered, since its writer would wait for an effect that never comes. */
function unknownDirective(directive: string, param: string): ProviderError {
  return new ProviderError('rejected', 'An unknown sandbox directive.', {
    publicMessage: `[sandbox] Unknown directive: ${directive.slice(0, 100)}`,
    param,
  });
}
