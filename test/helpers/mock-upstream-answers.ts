/**
 * How the mock upstream answers one call, by its behaviour: the wire format of the convention for chat, and the ways to
 * break any. Used only by `mock-upstream.ts`, whose head documents the behaviours.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { answerImages } from './mock-upstream-images.ts';
import { answerSpeech, isElevenLabs, SPEECH_PATH } from './mock-upstream-speech.ts';
import { type MockBehaviour, type MockCall, sendJson, write } from './mock-upstream-wire.ts';

const DEFAULT_CONTENT = 'Hello from the mock.';
const FIREHOSE_CHUNK = 'x'.repeat(16_000);

export async function answerCall(
  call: MockCall,
  response: ServerResponse,
  behaviour: MockBehaviour,
): Promise<void> {
  if (behaviour.latencyMs !== undefined) await delay(behaviour.latencyMs);
  if (behaviour.gate !== undefined) await behaviour.gate;
  if (behaviour.hang === 'before-headers') return;
  if (behaviour.reset === 'before-headers') return void response.socket?.resetAndDestroy();
  if (behaviour.rawBody !== undefined) return writeRaw(call, response, behaviour);
  if (behaviour.status !== undefined) {
    const error = {
      message: 'The mock was told to fail.',
      type: 'server_error',
      code: null,
      param: null,
      ...behaviour.error,
    };
    const body = isElevenLabs(call.path) ? { detail: behaviour.error ?? error } : { error };
    return sendJson(response, behaviour.status, body, behaviour);
  }
  if (call.path.startsWith('/v1/images/')) return answerImages(call, response, behaviour);
  if (SPEECH_PATH.test(call.path)) return answerSpeech(call, response, behaviour);
  if (call.body.stream === true) return writeStream(call, response, behaviour);
  return sendJson(response, 200, completion(call, behaviour), behaviour);
}

function completion(call: MockCall, behaviour: MockBehaviour): Record<string, unknown> {
  const content = behaviour.content ?? behaviour.chunks?.join('') ?? DEFAULT_CONTENT;
  const choices =
    behaviour.choices ??
    Array.from({ length: choiceCount(call) }, (_, index) => ({
      index,
      message: { role: 'assistant', content, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: behaviour.finishReason ?? 'stop',
    }));
  return {
    ...envelope(call, 'chat.completion'),
    choices,
    ...usageField(call, behaviour),
    ...behaviour.extra,
  };
}

async function writeStream(
  call: MockCall,
  response: ServerResponse,
  behaviour: MockBehaviour,
): Promise<void> {
  response.writeHead(200, {
    'content-type': behaviour.contentType ?? 'text/event-stream; charset=utf-8',
    ...behaviour.headers,
  });
  const base = { ...envelope(call, 'chat.completion.chunk'), ...behaviour.extra };
  const asksUsage =
    (call.body.stream_options as { include_usage?: boolean } | undefined)?.include_usage === true;
  const send = async (fields: Record<string, unknown>) => {
    await write(
      call,
      response,
      `data: ${JSON.stringify({ ...base, ...(asksUsage ? { usage: null } : {}), ...fields })}\n\n`,
    );
  };
  const indices = Array.from({ length: behaviour.choices?.length ?? choiceCount(call) }, (_, index) => index);
  const delta = (index: number, fields: Record<string, unknown>, finishReason: string | null = null) =>
    send({ choices: [{ index, delta: fields, logprobs: null, finish_reason: finishReason }] });

  for (const index of indices) await delta(index, { role: 'assistant', content: '', refusal: null });
  if (behaviour.firehoseBytes !== undefined) {
    while (call.bytesWritten < behaviour.firehoseBytes) await delta(0, { content: FIREHOSE_CHUNK });
  }
  const pieces =
    behaviour.chunks ?? (behaviour.content ?? DEFAULT_CONTENT).match(/\S*\s*/g)?.filter(Boolean) ?? [];
  for (let written = 0; ; written += 1) {
    if (behaviour.hang === written) return;
    if (behaviour.reset === written) return void response.socket?.resetAndDestroy();
    if (behaviour.cutAfterChunks === written) return void response.end();
    if (behaviour.errorEvent?.afterChunks === written) {
      const name = behaviour.errorEvent.named === true ? 'event: error\n' : '';
      await write(
        call,
        response,
        `${name}data: ${JSON.stringify({ error: behaviour.errorEvent.error })}\n\n`,
      );
      return void response.end();
    }
    const piece = pieces[written];
    if (piece === undefined) break;
    if (written > 0 && behaviour.chunkSpacingMs !== undefined) await delay(behaviour.chunkSpacingMs);
    if (written > 0) await behaviour.chunkGate?.(written);
    for (const index of indices) await delta(index, { content: piece });
  }
  if (behaviour.omitFinish !== true)
    for (const index of indices) await delta(index, {}, behaviour.finishReason ?? 'stop');
  if (asksUsage && behaviour.usage !== 'missing') await send({ choices: [], ...usageField(call, behaviour) });
  if (behaviour.omitDone !== true) await write(call, response, 'data: [DONE]\n\n');
  response.end();
}

async function writeRaw(call: MockCall, response: ServerResponse, behaviour: MockBehaviour): Promise<void> {
  const fallback = String(call.body.stream) === 'true' ? 'text/event-stream' : 'application/json';
  response.writeHead(behaviour.status ?? 200, {
    'content-type': behaviour.contentType ?? fallback,
    ...behaviour.headers,
  });
  const pieces = Array.isArray(behaviour.rawBody)
    ? (behaviour.rawBody as (string | Buffer)[])
    : [behaviour.rawBody as string | Buffer];
  for (const piece of pieces) {
    await write(call, response, piece);
    // One event-loop turn apart, so that the pieces reach the reader as separate reads.
    await new Promise((resolve) => setImmediate(resolve));
  }
  await behaviour.rawBodyGate;
  response.end();
}

function choiceCount(call: MockCall): number {
  return typeof call.body.n === 'number' ? call.body.n : 1;
}

function envelope(call: MockCall, object: string): Record<string, unknown> {
  return {
    id: `chatcmpl-mock-${call.index}`,
    object,
    created: 1_760_000_000,
    model: call.model,
    system_fingerprint: 'fp_mock',
  };
}

function usageField(call: MockCall, behaviour: MockBehaviour): Record<string, unknown> {
  if (behaviour.usage === 'missing') return {};
  if (behaviour.usage !== undefined) return { usage: behaviour.usage };
  const completionTokens = 5 * choiceCount(call);
  return {
    usage: {
      prompt_tokens: 9,
      completion_tokens: completionTokens,
      total_tokens: 9 + completionTokens,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: 0,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
  };
}
