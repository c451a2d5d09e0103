/** Transcription by a server of the OpenAI convention: a form in, JSON out, with times where they are asked for. */
import { Readable } from 'node:stream';
import { type FormBody, type FormPart, makeFormBody } from '../form-body.ts';
import { ROOMLESS_BYTES } from '../http-exchange.ts';
import {
  ProviderError,
  type Transcript,
  type TranscriptionCall,
  type TranscriptionProvider,
} from '../provider.ts';
import { eventError, isObject, statusError } from './errors.ts';
import type { OpenAiConnection } from './images.ts';
import { hasContentType, makeRoom, parseObject } from './response.ts';

/** Hours of speech with the time of each word are a few megabytes. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export function makeOpenAiTranscription({
  http,
  credential,
  headers,
}: OpenAiConnection): TranscriptionProvider {
  return {
    async transcribe(call) {
      const answer = await http.post({
        path: '/audio/transcriptions',
        headers: headers(call.requestId, 'application/json'),
        body: formOf(call),
        signal: call.signal,
        maxResponseBytes: MAX_ANSWER_BYTES,
      });
      if (answer.status !== 200) throw statusError(answer.status, answer.headers, answer.text, credential);
      if (!hasContentType(answer.headers, 'application/json')) {
        throw new ProviderError('invalid_response', 'The answer is not declared as JSON.', { status: 200 });
      }
      if (answer.bytes.length > ROOMLESS_BYTES) await makeRoom(answer.bytes);
      return transcriptOf(parseObject(answer.text), call);
    },
  };
}

function formOf(call: TranscriptionCall): FormBody {
  const { fileName, contentType, audio } = call;
  const parts: FormPart[] = [];
  const add = (name: string, content: FormPart['content']) => parts.push({ name, content });
  const open = () => Promise.resolve(Readable.from([audio]));
  add('file', { fileName, contentType, byteLength: audio.length, open });
  add('model', call.upstreamModel);
  // Not all models have times: only asked for where somebody wants them.
  add('response_format', call.wantsSegments || call.wantsWords ? 'verbose_json' : 'json');
  if (call.wantsSegments) add('timestamp_granularities[]', 'segment');
  if (call.wantsWords) add('timestamp_granularities[]', 'word');
  if (call.language !== undefined) add('language', call.language);
  if (call.prompt !== undefined) add('prompt', call.prompt);
  if (call.temperature !== undefined) add('temperature', `${call.temperature}`);
  return makeFormBody(parts);
}

function transcriptOf(body: Record<string, unknown>, call: TranscriptionCall): Transcript {
  if (isObject(body.error)) throw eventError(body.error);
  if (typeof body.text !== 'string') throw broken();
  return {
    text: body.text,
    language: typeof body.language === 'string' ? body.language : undefined,
    segments: call.wantsSegments
      ? listOf(body.segments)?.map((segment, id) => ({ id, ...timesOf(segment), text: textOf(segment.text) }))
      : undefined,
    words: call.wantsWords
      ? listOf(body.words)?.map((word) => ({ ...timesOf(word), word: textOf(word.word) }))
      : undefined,
  };
}

function listOf(value: unknown): Record<string, unknown>[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value) || !value.every(isObject)) throw broken();
  return value;
}

/** Models round: an end may be a little before its beginning. */
function timesOf({ start, end }: Record<string, unknown>): { start: number; end: number } {
  if (!isTime(start) || !isTime(end)) throw broken();
  return { start, end: Math.max(start, end) };
}

function isTime(value: unknown): value is number {
  return Number.isFinite(value) && (value as number) >= 0;
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw broken();
  return value;
}

function broken(): ProviderError {
  return new ProviderError('invalid_response', 'The answer is no transcript.');
}
