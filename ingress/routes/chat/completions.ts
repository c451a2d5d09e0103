/**
 * POST /v1/chat/completions: checks 5 to 8 for chat, the hold's quote, and then the common paid path.
 */

import { ServiceError } from '../../../core/errors.ts';
import type { ChatInput } from '../../../core/jobs.ts';
import { CHAT_TASK } from '../../../core/jobs.ts';
import { quoteChat } from '../../../core/pricing.ts';
import { type Context, callerOf, type Handler } from '../../context.ts';
import { readJsonBody } from '../../json-body.ts';
import { priceOf, requireModel } from '../../models.ts';
import { type PaidRequest, runPaid } from '../../paid.ts';
import { ChatRequest } from '../../schemas/chat.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { isBoundByText, promptTokenBound } from './prompt-tokens.ts';

/** The longest context a catalogue may name; for a model written into the database without one. */
const MOST_CONTEXT_TOKENS = 10_000_000;

const validate = makeValidator(ChatRequest);

export function chatCompletions(services: Services): Handler {
  return async (ctx) => {
    let answered: Promise<void> | undefined;
    // a large body keeps its room until the database has it
    await services.bodyBudget.withRoom(ctx, services.config.maxBodyBytes, async () => {
      const submitted = Promise.withResolvers<void>();
      answered = runPaid(ctx, services, await readChat(ctx, services), () => submitted.resolve());
      await Promise.race([submitted.promise, answered]);
    });
    await answered;
  };
}

async function readChat(ctx: Context, services: Services): Promise<PaidRequest> {
  const { raw, value } = await readJsonBody(ctx, services.config.maxBodyBytes);
  const body = validate(value);
  dropParsed(body.messages);
  if (body.max_tokens != null && body.max_completion_tokens != null) {
    throw new ServiceError('invalid_parameter', { param: 'max_completion_tokens' });
  }
  if (body.stream_options != null && body.stream !== true) {
    throw new ServiceError('invalid_parameter', { param: 'stream_options' });
  }

  const caller = callerOf(ctx);
  const model = requireModel(services.catalogue.current(), body.model, 'chat', caller);
  const price = priceOf(model, services.now());
  const modelMaximum = model.maxTokens ?? 0;
  const wanted = body.max_completion_tokens ?? body.max_tokens ?? modelMaximum;
  if (wanted > modelMaximum) {
    throw new ServiceError('invalid_parameter', {
      param: body.max_tokens == null ? 'max_completion_tokens' : 'max_tokens',
      maximum: modelMaximum,
    });
  }

  const choices = body.n ?? 1;
  const contextTokens = model.contextTokens ?? MOST_CONTEXT_TOKENS;
  const promptTokens = promptTokenBound(body, raw.length, contextTokens);
  const tokenPrice = { apInPer1k: price.apInPer1k ?? 0, apOutPer1k: price.apOutPer1k ?? 0 };
  const input: ChatInput = {
    body,
    isTest: caller.prefix === 'svc_test_',
    price: tokenPrice,
    promptTokens,
    ...(isBoundByText(body) ? {} : { contextTokens }),
    choices,
  };
  return {
    area: 'llm',
    task: CHAT_TASK,
    modelId: model.id,
    price,
    quote: quoteChat(tokenPrice, {
      promptTokens,
      outputCapTokens: wanted,
      choices,
      minimumOutputTokens: services.config.minimumOutputTokens,
    }),
    timeoutSeconds: services.config.chatTimeoutSeconds,
    isStream: body.stream === true,
    input,
    rawBody: raw,
    stopWhenCallerLeaves: true,
  };
}

interface SentBack {
  parsed?: unknown;
  readonly tool_calls?: readonly { readonly function?: { parsed_arguments?: unknown } }[];
}

/** What the official client adds to answers is for its own caller: providers refuse it. */
function dropParsed(messages: readonly object[]): void {
  for (const message of messages as readonly SentBack[]) {
    if (message.parsed !== undefined) delete message.parsed;
    for (const { function: called } of message.tool_calls ?? [])
      if (called?.parsed_arguments !== undefined) delete called.parsed_arguments;
  }
}
