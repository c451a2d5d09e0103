/**
 * A completion put together from the chunks it was streamed in, for callers who ask for a streamed request's result afterwards.
 * The convention's rules: strings are appended, tool calls are merged by index, anything else is replaced by its latest value.
 */

type Json = Record<string, unknown>;

interface Chunk extends Json {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly {
    index: number;
    delta?: Json;
    finish_reason?: string | null;
    logprobs?: Json | null;
  }[];
}

interface Choice extends Json {
  index: number;
  message: Json;
  finish_reason: string | null;
  logprobs: Json | null;
}

export function assembleCompletion(chunks: readonly Chunk[]): Json {
  const first = chunks[0];
  const choices = new Map<number, Choice>();
  let extras: Json = {};
  for (const {
    id: _id,
    object: _object,
    created: _created,
    model: _model,
    choices: parts,
    ...rest
  } of chunks) {
    extras = { ...extras, ...withoutNull(rest) };
    for (const part of parts) {
      let choice = choices.get(part.index);
      if (choice === undefined) {
        choice = {
          index: part.index,
          message: { role: 'assistant', content: null },
          finish_reason: null,
          logprobs: null,
        };
        choices.set(part.index, choice);
      }
      choice.message = mergeDelta(choice.message, part.delta ?? {});
      choice.finish_reason = part.finish_reason ?? choice.finish_reason;
      if (part.logprobs != null) choice.logprobs = mergeDelta(choice.logprobs ?? {}, part.logprobs);
    }
  }
  return {
    id: first?.id,
    object: 'chat.completion',
    created: first?.created,
    model: first?.model,
    choices: [...choices.values()].toSorted((a, b) => a.index - b.index).map(withoutIndexes),
    ...extras,
  };
}

function mergeDelta(target: Json, delta: Json): Json {
  const merged: Json = { ...target };
  for (const [name, value] of Object.entries(delta)) {
    const before = merged[name];
    if (value === null || value === undefined) {
      if (before === undefined) merged[name] = value;
    } else if (typeof value === 'string' && typeof before === 'string' && !REPLACED.has(name)) {
      merged[name] = before + value;
    } else if (Array.isArray(value)) {
      merged[name] = mergeList(Array.isArray(before) ? (before as unknown[]) : [], value as unknown[]);
    } else if (isObject(value) && isObject(before)) {
      merged[name] = mergeDelta(before, value);
    } else {
      merged[name] = value;
    }
  }
  return merged;
}

/** Strings that name something instead of carrying a piece of text. */
const REPLACED = new Set(['role', 'id', 'type']);

/** Items with an `index` are pieces of the item of that index; others are further items. */
function mergeList(target: unknown[], items: unknown[]): unknown[] {
  const merged = [...target];
  for (const item of items) {
    if (isObject(item) && typeof item.index === 'number') {
      const at = merged.findIndex((other) => isObject(other) && other.index === item.index);
      if (at === -1) merged.push(item);
      else merged[at] = mergeDelta(merged[at] as Json, item);
    } else {
      merged.push(item);
    }
  }
  return merged;
}

/** Tool calls of a whole completion carry no index. */
function withoutIndexes(choice: Choice): Choice {
  const { tool_calls: toolCalls } = choice.message;
  if (!Array.isArray(toolCalls)) return choice;
  return {
    ...choice,
    message: {
      ...choice.message,
      tool_calls: toolCalls.map(({ index: _index, ...call }: Json) => call),
    },
  };
}

function withoutNull(object: Json): Json {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
