/**
 * A provider inside the worker that needs nothing outside: deterministic chat in the real wire format, pictures and speech, for
 * test keys, the first start and tests. It says that it is the sandbox in every answer. See docs/sandbox.md.
 */
import type { CheckableProvider } from '../check.ts';
import {
  type ChatCall,
  type ChatChunk,
  type ChatCompletion,
  type ProviderConfig,
  ProviderError,
} from '../provider.ts';
import { countPromptTokens, loadTokenizer } from '../tokens.ts';
import { type Choice, makeChoices } from './answer.ts';
import { lastUserText } from './body.ts';
import { cutError, type Directives, directedError, parseDirectives } from './directives.ts';
import { produceImages, streamImages } from './images.ts';
import { pause } from './pause.ts';
import { sandboxSpeech } from './speech.ts';
import { sandboxTranscription } from './transcription.ts';
import { makeChunks, makeCompletion, makeUsage, makeUsageChunk } from './wire.ts';

/** Between streamed chunks: enough to see that it streams, little enough for tests. */
const CHUNK_SPACING_MS = 3;

export function makeSandboxProvider(config: ProviderConfig): CheckableProvider {
  return {
    name: config.name,
    kind: config.kind,
    chat: { complete, stream },
    image: { produce: produceImages, stream: streamImages },
    speech: sandboxSpeech,
    transcription: sandboxTranscription,
    check: () => Promise.resolve({ models: [] }),
    close: () => Promise.resolve(),
  };
}

async function complete(call: ChatCall): Promise<ChatCompletion> {
  const { directives, choices, promptTokens } = await prepare(call);
  if (directives.cut) throw cutError();
  const usage = directives.noUsage ? undefined : makeUsage(promptTokens, choices);
  return { completion: makeCompletion(call, choices, usage), usage };
}

async function* stream(call: ChatCall): AsyncGenerator<ChatChunk, void, undefined> {
  const { directives, choices, promptTokens } = await prepare(call);
  const chunks = makeChunks(call, choices);
  const end = directives.cut ? Math.ceil(chunks.length / 2) : chunks.length;
  for (const [index, chunk] of chunks.slice(0, end).entries()) {
    if (index > 0) await pause(CHUNK_SPACING_MS, call.signal);
    yield { chunk, usage: undefined };
  }
  if (directives.cut) throw cutError();
  if (directives.noUsage) return;
  const usage = makeUsage(promptTokens, choices);
  call.signal.throwIfAborted();
  yield { chunk: makeUsageChunk(call, usage), usage };
}

async function prepare(
  call: ChatCall,
): Promise<{ directives: Directives; choices: Choice[]; promptTokens: number }> {
  call.signal.throwIfAborted();
  const directives = parseDirectives(lastUserText(call.body));
  if (directives.delayMs > 0) await pause(directives.delayMs, call.signal);
  if (directives.error !== undefined) throw directedError(directives.error);
  const tokenizer = await loadTokenizer();
  const promptTokens = await countPromptTokens(call.body);
  if (promptTokens > (call.promptCapTokens ?? Number.POSITIVE_INFINITY)) throw promptTooLong(promptTokens);
  call.signal.throwIfAborted();
  return { directives, choices: await makeChoices(call.body, call.outputCapTokens, tokenizer), promptTokens };
}

function promptTooLong(promptTokens: number): ProviderError {
  return new ProviderError('rejected', 'A prompt longer than the context.', {
    publicMessage: `[sandbox] The messages have ${promptTokens} tokens, more than the model's context.`,
    param: 'messages',
  });
}
