/**
 * Chat, pictures and speech of any server of the OpenAI convention: a base address (with its `/v1`) and a bearer credential, or none for a
 * server that needs none. Nothing of a body is changed but the model, the output cap and the streaming fields.
 */
import type { CheckableProvider } from '../check.ts';
import { checkCredential, parseBaseUrl } from '../configuration.ts';
import { type HttpRequest, makeHttpClient } from '../http.ts';
import { type HttpLimits, ROOMLESS_BYTES } from '../http-exchange.ts';
import type { ChatCall, ChatChunk, ChatCompletion, ProviderConfig } from '../provider.ts';
import { ProviderError } from '../provider.ts';
import { ChatChunks, MAX_CHUNK_CHARACTERS } from './chat-chunks.ts';
import { checkModels } from './check.ts';
import { statusError } from './errors.ts';
import { EventStream } from './event-stream.ts';
import { makeOpenAiImages } from './images.ts';
import { chatRequestBody } from './request.ts';
import { checkCompletion, hasContentType, makeRoom, parseObject, parseUsage } from './response.ts';
import { makeOpenAiSpeech } from './speech.ts';
import { makeOpenAiTranscription } from './transcription.ts';

/**
 * Of a whole answer. Tokens with `logprobs` are what makes one large: with the 20 likeliest of each about 1.3 KB a token, or
 * 4 KB from a provider that indents, so this is 12,000 of them, or 4,000.
 */
const MAX_COMPLETION_BYTES = 16 * 1024 * 1024;

export function makeOpenAiProvider(
  config: ProviderConfig,
  limits: Partial<HttpLimits> = {},
): CheckableProvider {
  const baseUrl = parseBaseUrl(config);
  const { credential } = config;
  checkCredential(config);
  const http = makeHttpClient(baseUrl, limits);
  const maxCompletionBytes = Math.min(MAX_COMPLETION_BYTES, limits.maxResponseBytes ?? MAX_COMPLETION_BYTES);
  const authorization = credential === undefined ? [] : ['authorization', `Bearer ${credential}`];

  const headers = (requestId: string, accept: string): readonly string[] => [
    ...authorization,
    'accept',
    accept,
    // For tracing only. Not an Idempotency-Key: one request of ours can make several calls, and a retry after a failure must be a new call.
    'x-client-request-id',
    requestId,
  ];

  function chatRequest(call: ChatCall, stream: boolean): HttpRequest {
    const accepted = headers(call.requestId, stream ? 'text/event-stream' : 'application/json');
    return {
      path: '/chat/completions',
      headers: [...accepted, 'content-type', 'application/json'],
      body: chatRequestBody(call, stream),
      signal: call.signal,
      maxResponseBytes: stream ? undefined : maxCompletionBytes,
      room: call.room,
    };
  }

  async function complete(call: ChatCall): Promise<ChatCompletion> {
    const answer = await http.post(chatRequest(call, false));
    if (answer.status !== 200) throw statusError(answer.status, answer.headers, answer.text, credential);
    if (!hasContentType(answer.headers, 'application/json')) {
      throw new ProviderError('invalid_response', 'The answer is not declared as JSON.', { status: 200 });
    }
    if (answer.bytes.length > ROOMLESS_BYTES) await makeRoom(answer.bytes, call.room);
    const completion = parseObject(answer.text);
    checkCompletion(completion);
    return { completion, usage: parseUsage(completion.usage) };
  }

  function stream(call: ChatCall): AsyncIterable<ChatChunk> {
    const choiceCount = typeof call.body.n === 'number' ? call.body.n : 1;
    return new EventStream<ChatChunk>({
      open: () => http.postStream(chatRequest(call, true)),
      interpreter: new ChatChunks(choiceCount),
      maxEventCharacters: MAX_CHUNK_CHARACTERS,
      credential,
      signal: call.signal,
    });
  }

  const connection = { http, baseUrl, credential, headers };
  return {
    name: config.name,
    kind: config.kind,
    chat: { complete, stream },
    image: makeOpenAiImages(connection),
    speech: makeOpenAiSpeech(connection),
    transcription: makeOpenAiTranscription(connection),
    check: (signal) => checkModels(baseUrl, credential, signal),
    close: (graceMs) => http.close(graceMs),
  };
}
