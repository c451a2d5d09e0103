/** What the events of a streamed chat answer mean: chunks, checked, and whether every choice has finished. */
import { type ChatChunk, ProviderError } from '../provider.ts';
import { isObject } from './errors.ts';
import type { EventInterpreter } from './event-stream.ts';
import { parseUsage } from './response.ts';

/** Characters of one event. */
export const MAX_CHUNK_CHARACTERS = 1_000_000;
/** The convention's own limit for `n`. */
const MAX_CHOICES = 128;

export class ChatChunks implements EventInterpreter<ChatChunk> {
  /** The usage comes behind the last choice, and then `[DONE]`. */
  readonly isComplete = false;
  readonly #choiceCount: number;
  readonly #isFinishedByChoice = new Map<number, boolean>();

  /** `choiceCount`: how many were asked for; without `[DONE]` all of them must have finished. */
  constructor(choiceCount: number) {
    this.#choiceCount = choiceCount;
  }

  take(chunk: Readonly<Record<string, unknown>>): ChatChunk {
    const choices = chunk.choices;
    if (!Array.isArray(choices)) throw new ProviderError('invalid_response', 'A chunk has no choices.');
    for (const choice of choices as unknown[]) this.#note(choice);
    return { chunk, usage: parseUsage(chunk.usage) };
  }

  checkEnd(by: 'done' | 'end' | 'cut'): void {
    const leastChoices = by === 'done' ? 0 : this.#choiceCount;
    const states = [...this.#isFinishedByChoice.values()];
    if (states.length === 0 || states.length < leastChoices || states.includes(false)) {
      throw new ProviderError('invalid_response', 'The stream ended before the answer did.');
    }
  }

  #note(choice: unknown): void {
    if (!isObject(choice))
      throw new ProviderError('invalid_response', 'A choice of a chunk is not an object.');
    const index = choice.index;
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= MAX_CHOICES) {
      throw new ProviderError('invalid_response', 'A choice of a chunk has no index.');
    }
    if (typeof choice.finish_reason === 'string') this.#isFinishedByChoice.set(index as number, true);
    else if (!this.#isFinishedByChoice.has(index as number))
      this.#isFinishedByChoice.set(index as number, false);
  }
}
