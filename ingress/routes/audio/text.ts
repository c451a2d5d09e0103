/** Check 5 of a text to be spoken: what has codes of its own, and what no provider could be sent. */
import type { Config } from '../../../core/config.ts';
import { ServiceError } from '../../../core/errors.ts';
import { charactersOf } from '../../../core/speech.ts';

/** Bytes a body may have besides its text, and for each character of it: `\ud83d\ude00` is one. */
const BODY_BYTES = 64 * 1024;
const CHARACTER_BYTES = 12;
/** A text that is much too long is told so, rather than that its body is. */
const GENEROUS = 10;

export function maxSpeechBodyBytes({ maxSpeechCharacters }: Pick<Config, 'maxSpeechCharacters'>): number {
  return BODY_BYTES + GENEROUS * CHARACTER_BYTES * maxSpeechCharacters;
}

export interface SpokenText {
  readonly text: string;
  readonly characters: number;
}

export function requireText(
  text: string | null | undefined,
  param: string,
  { maxSpeechCharacters }: Pick<Config, 'maxSpeechCharacters'>,
): SpokenText {
  if (text == null || text.trim() === '') throw new ServiceError('text_required', { param });
  if (!text.isWellFormed() || text.includes('\u0000')) throw new ServiceError('invalid_parameter', { param });
  const characters = charactersOf(text);
  if (characters > maxSpeechCharacters) {
    throw new ServiceError('text_too_long', { param, max_characters: maxSpeechCharacters });
  }
  return { text, characters };
}
