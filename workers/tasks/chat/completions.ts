/**
 * chat/completions: one chat request, streamed or whole. The provider's answer is passed on as it came, with `id`, `model` and
 * `created` ours; its usage is what is charged, once it has been found plausible.
 */
import type { ChatInput, PaidJobPayload } from '../../../core/jobs.ts';
import { CHAT_TASK } from '../../../core/jobs.ts';
import { chatCostAp } from '../../../core/pricing.ts';
import {
  type ChatCall,
  type ChatProvider,
  type GrowingRoom,
  type Provider,
  ProviderError,
  type TokenUsage,
} from '../../providers/provider.ts';
import { countPromptTokens, ProducedText } from '../../providers/tokens.ts';
import type { Routes } from '../../routes.ts';
import type { Run } from '../../run.ts';
import type { Outcome, PaidTask } from '../../task.ts';
import type { ChatRooms } from './room.ts';

/** Providers' templates may add to a prompt of text; beyond the bound by more than this a reported usage is not believed. */
const PROMPT_SLACK_TOKENS = 1024;
/** A stop token or two past the cap, in each choice, is rounding, more is a lie. */
const COMPLETION_SLACK_TOKENS = 8;

type Usage = Pick<TokenUsage, 'promptTokens' | 'completionTokens' | 'raw'>;
type Json = Readonly<Record<string, unknown>>;

/** What one try of a stream has brought so far. */
interface Heard {
  readonly produced: ProducedText;
  /** Set with the first chunk. */
  provider: string | undefined;
  /** As it was reported last. */
  usage: TokenUsage | undefined;
  /** How much had been produced by then. */
  piecesInUsage: number;
}

export function makeChatTask(routes: Routes, rooms: ChatRooms): PaidTask<ChatInput> {
  return {
    name: CHAT_TASK,
    // a whole answer nobody has seen may be made again; a stream may have been read already
    mayRepeat: (payload) => !payload.isStream,
    perform: (run, input) =>
      run.payload.isStream ? performStream(run, input, routes) : performWhole(run, input, routes, rooms),
  };
}

async function performWhole(run: Run, input: ChatInput, routes: Routes, rooms: ChatRooms): Promise<Outcome> {
  const room = rooms.for(run);
  const { completion, usage, provider } = await routes.call(
    { modelId: run.payload.modelId, isTest: input.isTest, signal: run.signal, times: run.payload },
    async (provider, route) => {
      const answer = await chatOf(provider).complete(callOf(run, input, route.upstreamModel, room));
      const counted = await believableUsage(run, input, answer.usage, provider.name, () =>
        producedBy(answer.completion),
      );
      return { completion: answer.completion, usage: counted, provider: provider.name };
    },
  );
  return {
    kind: 'succeeded',
    costAp: chatCostAp(input.price, usage),
    usage: usageView(usage),
    provider,
    body: JSON.stringify({
      ...completion,
      ...ours(run.payload),
      object: 'chat.completion',
      usage: usageBody(usage),
    }),
  };
}

async function performStream(run: Run, input: ChatInput, routes: Routes): Promise<Outcome> {
  const wantsUsage =
    (input.body.stream_options as { include_usage?: boolean } | null | undefined)?.include_usage === true;
  const outputCap = run.payload.units * input.choices;
  let heard = nothingHeard();
  try {
    await routes.call(
      { modelId: run.payload.modelId, isTest: input.isTest, signal: run.signal, times: run.payload },
      async (provider, route) => {
        heard = nothingHeard(); // of a try that failed: nothing of it was passed on, and nothing of it is charged
        const { produced } = heard;
        /** What went past the cap by a little: it goes out only if the provider ends there. */
        const excess: string[] = [];
        for await (const { chunk, usage } of chatOf(provider).stream(
          callOf(run, input, route.upstreamModel),
        )) {
          heard.provider = provider.name;
          produced.add(chunk);
          if (usage !== undefined) {
            heard.usage = usage;
            heard.piecesInUsage = produced.pieces;
          }
          const { usage: _usage, ...visible } = chunk;
          // the chunk that carries nothing but usage is ours to send, with the cost, once it is on the books
          if (usage !== undefined && (chunk.choices as unknown[]).length === 0) continue;
          if (produced.pieces > mostCompletionTokens(run, input)) {
            throw new ProviderError('invalid_response', `${provider.name} ignores the output cap`);
          }
          const event = JSON.stringify({
            ...visible,
            ...ours(run.payload),
            ...(wantsUsage ? { usage: null } : {}),
          });
          if (produced.pieces > outputCap) excess.push(event);
          else await run.emit(event);
          run.signal.throwIfAborted();
        }
        for (const event of excess) await run.emit(event);
      },
      () => run.events.length > 0,
    );
  } catch (error) {
    if (heard.provider === undefined || !isPaidAsFarAsItGot(run, error)) throw error;
    const counted = await usageSoFar(run, input, heard);
    return {
      kind: 'cancelled',
      costAp: chatCostAp(input.price, counted),
      usage: usageView(counted),
      provider: heard.provider,
    };
  }
  const { provider = '', produced, usage } = heard;
  const believed = await believableUsage(run, input, usage, provider, () => produced);
  const counted = usage === undefined ? believed : await withRest(believed, heard);
  const costAp = Math.min(chatCostAp(input.price, counted), run.payload.holdAp);
  return {
    kind: 'succeeded',
    costAp,
    usage: usageView(counted),
    provider,
    lastEvents: wantsUsage ? [usageEvent(run.payload, counted, costAp)] : [],
  };
}

function nothingHeard(): Heard {
  return { produced: new ProducedText(), provider: undefined, usage: undefined, piecesInUsage: 0 };
}

/** A stream that ended early by the caller's doing, or by a limit of ours after the caller got a part of it; not by the provider's. */
function isPaidAsFarAsItGot(run: Run, error: unknown): boolean {
  switch (run.abortCause) {
    case 'client_gone':
      return true;
    case 'deadline':
      return run.isHeldUpByReader;
    case undefined:
      return error instanceof ProviderError && error.isOurLimit && run.events.length > 0;
    default:
      return false;
  }
}

function chatOf(provider: Provider): ChatProvider {
  if (provider.chat === undefined) throw new ProviderError('misconfigured', `${provider.name} does not chat`);
  return provider.chat;
}

function callOf(run: Run, input: ChatInput, upstreamModel: string, room?: GrowingRoom): ChatCall {
  return {
    requestId: run.id,
    upstreamModel,
    body: input.body,
    outputCapTokens: run.payload.units,
    promptCapTokens: Math.max(input.promptTokens, input.contextTokens ?? 0),
    signal: run.signal,
    room,
  };
}

/** The fields of every answer that are ours and not the provider's. */
function ours(payload: PaidJobPayload): Json {
  return {
    id: `chatcmpl-${payload.id}`,
    created: Math.floor(payload.createdAtMs / 1000),
    model: payload.modelId,
  };
}

/** The provider's usage when it can be true, our own count when it gave none; a lie ends the request unbilled. */
async function believableUsage(
  run: Run,
  input: ChatInput,
  reported: TokenUsage | undefined,
  provider: string,
  produced: () => ProducedText,
): Promise<Usage> {
  if (reported === undefined) return countUsage(input, produced());
  if (!isBelievable(run, input, reported)) {
    throw new ProviderError(
      'invalid_response',
      `${provider} reports more tokens than the request can have used`,
    );
  }
  return reported;
}

function isBelievable(run: Run, input: ChatInput, reported: TokenUsage): boolean {
  const mostPrompt = Math.max(input.promptTokens + PROMPT_SLACK_TOKENS, input.contextTokens ?? 0);
  return reported.promptTokens <= mostPrompt && reported.completionTokens <= mostCompletionTokens(run, input);
}

/** A chunk of a stream is at least one token of a choice, so this is also the most chunks that can be. */
function mostCompletionTokens(run: Run, input: ChatInput): number {
  return (run.payload.units + COMPLETION_SLACK_TOKENS) * input.choices;
}

/** Of a stream that was ended early: what the provider has reported, and our own count of what it has not. */
async function usageSoFar(run: Run, input: ChatInput, heard: Heard): Promise<Usage> {
  const { produced, usage } = heard;
  if (usage === undefined || !isBelievable(run, input, usage)) return countUsage(input, produced);
  return withRest(usage, heard);
}

/** What was produced after its usage was reported is in our own count alone. */
async function withRest(reported: Usage, { produced, piecesInUsage }: Heard): Promise<Usage> {
  if (produced.pieces === piecesInUsage) return reported;
  return {
    ...reported,
    completionTokens: Math.max(reported.completionTokens, await produced.countTokens()),
  };
}

async function countUsage(input: ChatInput, produced: ProducedText): Promise<Usage> {
  const [promptTokens, completionTokens] = await Promise.all([
    countPromptTokens(input.body),
    produced.countTokens(),
  ]);
  return { promptTokens, completionTokens, raw: {} };
}

function producedBy(completion: Json): ProducedText {
  const produced = new ProducedText();
  produced.add(completion);
  return produced;
}

/** The convention's usage object, with whatever details the provider gave. */
function usageBody(usage: Usage): Json {
  return {
    ...usage.raw,
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
  };
}

/** What stays with the request for good: the counts alone. */
function usageView(usage: Usage): Json {
  return { prompt_tokens: usage.promptTokens, completion_tokens: usage.completionTokens };
}

function usageEvent(payload: PaidJobPayload, usage: Usage, costAp: number): string {
  return JSON.stringify({
    ...ours(payload),
    object: 'chat.completion.chunk',
    choices: [],
    usage: usageBody(usage),
    ap_cost: costAp,
  });
}
