/** Cheap checks of what an upstream sent: enough that whoever reads it later meets no surprise, no more (hot path). */
import { type BulkyJson, parseBulkyJson } from '../../../core/bulky-json.ts';
import { memoryOfJson } from '../json-memory.ts';
import { type GrowingRoom, ProviderError, type TokenUsage } from '../provider.ts';
import { eventError, isObject } from './errors.ts';

/** What becomes of one answer in memory. A heap of 512 MB holds one such, beside all that is small. */
const MAX_ANSWER_MEMORY = 192 * 1024 * 1024;

/** Resolves when an answer may be parsed. */
export async function makeRoom(text: Buffer, room?: GrowingRoom): Promise<void> {
  const bytes = memoryOfJson(text);
  if (bytes > MAX_ANSWER_MEMORY)
    throw new ProviderError('invalid_response', `The answer would take ${bytes} bytes of memory.`, {
      isOurLimit: true,
    });
  await room?.grow(bytes);
}

export function parseObject(text: string): Record<string, unknown> {
  return requireObject(parsed<unknown>(() => JSON.parse(text)));
}

/** Of an answer with files in it; see core/bulky-json.ts. */
export function parseBulkyObject(
  text: Buffer,
): Pick<BulkyJson, 'bytesOf'> & { body: Record<string, unknown> } {
  const { value, bytesOf } = parsed(() => parseBulkyJson(text));
  return { body: requireObject(value), bytesOf };
}

function parsed<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch {
    // the parser's own error quotes the answer, which no log may show
    throw new ProviderError('invalid_response', 'The answer is not JSON.');
  }
}

function requireObject(value: unknown): Record<string, unknown> {
  if (!isObject(value)) throw new ProviderError('invalid_response', 'The answer is not a JSON object.');
  return value;
}

export function checkCompletion(completion: Record<string, unknown>): void {
  if (isObject(completion.error)) throw eventError(completion.error);
  const choices = completion.choices;
  if (!Array.isArray(choices) || choices.length === 0)
    throw new ProviderError('invalid_response', 'The answer has no choices.');
  for (const choice of choices as unknown[]) {
    if (!isObject(choice) || !isObject(choice.message))
      throw new ProviderError('invalid_response', 'A choice has no message.');
  }
}

/** `undefined` when none was reported; throws when what was reported cannot be a count. */
export function parseUsage(usage: unknown): TokenUsage | undefined {
  if (usage === undefined || usage === null) return undefined;
  if (!isObject(usage)) throw new ProviderError('invalid_response', 'The usage is not an object.');
  const promptTokens = usage.prompt_tokens;
  const completionTokens = usage.completion_tokens;
  const totalTokens = usage.total_tokens;
  if (
    !isCount(promptTokens) ||
    !isCount(completionTokens) ||
    !(totalTokens === undefined || totalTokens === null || isCount(totalTokens))
  ) {
    throw new ProviderError('invalid_response', 'The usage is not made of counts.');
  }
  return { promptTokens, completionTokens, raw: usage };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function hasContentType(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  wanted: string,
): boolean {
  const type = headers['content-type'];
  if (typeof type !== 'string') return false;
  if (type.startsWith(wanted)) return true;
  return type.trimStart().toLowerCase().startsWith(wanted);
}
