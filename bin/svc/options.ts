/** Parsers of option values: each gives the value or says what is allowed. */
import { InvalidArgumentError } from 'commander';
import { ISO_TIME_HINT, parseIsoTime } from '../../core/iso-time.ts';
import { SCOPES, type Scope } from '../../core/keys.ts';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const MAX_NAME_LENGTH = 200; // app.accounts, app.operator_tokens

export function id(text: string): string {
  if (!UUID.test(text)) throw new InvalidArgumentError('It must be a UUID.');
  return text.toLowerCase();
}

export function name(text: string): string {
  const length = [...text].length;
  if (text.trim() === '' || length > MAX_NAME_LENGTH) {
    throw new InvalidArgumentError(`It must have from 1 to ${MAX_NAME_LENGTH} characters.`);
  }
  return text;
}

export function wholeNumber(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER) {
  return (text: string): number => {
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!Number.isSafeInteger(value) || value < minimum || value > maximum) {
      throw new InvalidArgumentError(`It must be a whole number from ${minimum} to ${maximum}.`);
    }
    return value;
  };
}

export function time(text: string): Date {
  const value = parseIsoTime(text);
  if (value === undefined) throw new InvalidArgumentError(`It must be ${ISO_TIME_HINT}.`);
  return value;
}

export function scopes(text: string): Scope[] {
  return list(text).map((word) => {
    const scope = SCOPES.find((known) => known === word);
    if (scope === undefined) throw new InvalidArgumentError(`Scopes are ${SCOPES.join(', ')}.`);
    return scope;
  });
}

/** A comma-separated list, each word once. */
export function list(text: string): string[] {
  const words = text.split(',').map((word) => word.trim());
  if (words.includes('')) throw new InvalidArgumentError('It must be words with commas between them.');
  return [...new Set(words)];
}
