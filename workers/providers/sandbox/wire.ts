/** The sandbox's answers in the convention's wire shapes: a whole completion, or the chunks of a stream. */
import type { ChatCall, TokenUsage } from '../provider.ts';
import type { Choice, Piece, ToolCall } from './answer.ts';
import { logprobsOf } from './logprobs.ts';

/** Content chunks of a streamed choice; a longer answer has larger chunks rather than more of them. */
const MAX_CHUNKS_PER_CHOICE = 60;

type Wire = Record<string, unknown>;

export function makeUsage(promptTokens: number, choices: readonly Choice[]): TokenUsage {
  const completionTokens = choices.reduce((sum, choice) => sum + choice.tokens, 0);
  const raw = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
  return { promptTokens, completionTokens, raw };
}

export function makeCompletion(
  call: ChatCall,
  choices: readonly Choice[],
  usage: TokenUsage | undefined,
): Wire {
  return {
    ...envelope(call, 'chat.completion'),
    choices: choices.map((choice, index) => ({
      index,
      message: {
        role: 'assistant',
        content: choice.content,
        refusal: null,
        annotations: [],
        ...(choice.toolCalls.length > 0 ? { tool_calls: choice.toolCalls.map(toolCall) } : {}),
      },
      logprobs: logprobs(call, choice, choice.pieces),
      finish_reason: choice.finishReason,
    })),
    ...(usage === undefined ? {} : { usage: usage.raw }),
  };
}

/** In the order they are sent, without the usage chunk. Choices take turns, as they do upstream. */
export function makeChunks(call: ChatCall, choices: readonly Choice[]): Wire[] {
  const base = { ...envelope(call, 'chat.completion.chunk'), usage: null };
  const chunk = (index: number, delta: Wire, logprobs: unknown, finishReason: string | null): Wire => ({
    ...base,
    choices: [{ index, delta, logprobs, finish_reason: finishReason }],
  });
  const lanes = choices.map((choice, index) => {
    const opening = { role: 'assistant', content: choice.content === null ? null : '', refusal: null };
    return [
      chunk(index, opening, null, null),
      ...contentDeltas(choice).map((pieces) =>
        chunk(
          index,
          { content: pieces.map((piece) => piece.text).join('') },
          logprobs(call, choice, pieces),
          null,
        ),
      ),
      ...choice.toolCalls
        .flatMap(toolCallDeltas)
        .map((delta) => chunk(index, { tool_calls: [delta] }, null, null)),
      chunk(index, {}, null, choice.finishReason),
    ];
  });
  const chunks: Wire[] = [];
  const longest = Math.max(...lanes.map((lane) => lane.length));
  for (let turn = 0; turn < longest; turn += 1) {
    for (const lane of lanes) chunks.push(...lane.slice(turn, turn + 1));
  }
  return chunks;
}

export function makeUsageChunk(call: ChatCall, usage: TokenUsage): Wire {
  return { ...envelope(call, 'chat.completion.chunk'), choices: [], usage: usage.raw };
}

function contentDeltas(choice: Choice): Piece[][] {
  const size = Math.max(1, Math.ceil(choice.pieces.length / MAX_CHUNKS_PER_CHOICE));
  return Array.from({ length: Math.ceil(choice.pieces.length / size) }, (_, index) =>
    choice.pieces.slice(index * size, (index + 1) * size),
  );
}

function toolCall(call: ToolCall): Wire {
  return call.type === 'function'
    ? { id: call.id, type: 'function', function: { name: call.name, arguments: call.input } }
    : { id: call.id, type: 'custom', custom: { name: call.name, input: call.input } };
}

/** The name first, then the arguments in two parts, so that a client's joining of them is exercised. */
function toolCallDeltas(call: ToolCall, index: number): Wire[] {
  const inputField = call.type === 'function' ? 'arguments' : 'input';
  const middle = Math.ceil(call.input.length / 2);
  const parts = [call.input.slice(0, middle), call.input.slice(middle)].filter(Boolean);
  return [
    { index, id: call.id, type: call.type, [call.type]: { name: call.name, [inputField]: '' } },
    ...parts.map((part) => ({ index, [call.type]: { [inputField]: part } })),
  ];
}

function logprobs(call: ChatCall, choice: Choice, pieces: readonly Piece[]): unknown {
  if (call.body.logprobs !== true || choice.content === null) return null;
  const topCount = call.body.top_logprobs;
  return logprobsOf(choice, pieces, typeof topCount === 'number' ? topCount : 0);
}

function envelope(call: ChatCall, object: string): Wire {
  return {
    id: `chatcmpl-sandbox-${call.requestId}`,
    object,
    created: Math.floor(Date.now() / 1000),
    model: call.upstreamModel,
    service_tier: 'default',
    // The sign that is there even when a cap, a stop sequence or a schema leaves no room for `[sandbox]` in the content.
    system_fingerprint: 'sandbox',
  };
}
