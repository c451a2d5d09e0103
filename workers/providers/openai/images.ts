/** Pictures from a server of the OpenAI convention: generations, edits, and both as streams. */
import type { HttpClient, HttpRequest } from '../http.ts';
import { type ImageCall, type ImageEvent, type ImageProvider, ProviderError } from '../provider.ts';
import { isObject, statusError } from './errors.ts';
import { EventStream } from './event-stream.ts';
import { MAX_PICTURES_BYTES, picturesOf } from './image-answer.ts';
import { ImageEvents } from './image-events.ts';
import { imageRequestBody } from './image-request.ts';
import { hasContentType, parseBulkyObject } from './response.ts';

/** In base64, and what stands around it. */
const MAX_ANSWER_BYTES = Math.ceil((MAX_PICTURES_BYTES * 4) / 3) + 64 * 1024;
/** Of one event, which holds one picture. */
const MAX_EVENT_CHARACTERS = 48 * 1024 * 1024;

export interface OpenAiConnection {
  readonly http: HttpClient;
  readonly baseUrl: URL;
  readonly credential: string | undefined;
  /** Those of every call: who we are, what we take, and which request it is for. */
  headers(requestId: string, accept: string): readonly string[];
}

export function makeOpenAiImages({ http, baseUrl, credential, headers }: OpenAiConnection): ImageProvider {
  function imageRequest(call: ImageCall, stream: boolean): HttpRequest {
    const body = imageRequestBody(call, stream);
    const accepted = headers(call.requestId, stream ? 'text/event-stream' : 'application/json');
    return {
      path: call.images.length === 0 ? '/images/generations' : '/images/edits',
      headers: typeof body === 'string' ? [...accepted, 'content-type', 'application/json'] : accepted,
      body,
      signal: call.signal,
      room: call.room,
      maxResponseBytes: MAX_ANSWER_BYTES * (stream ? 1 + call.partialImages : 1),
    };
  }

  return {
    async produce(call) {
      const answer = await http.post(imageRequest(call, false));
      if (answer.status !== 200) throw statusError(answer.status, answer.headers, answer.text, credential);
      if (!hasContentType(answer.headers, 'application/json')) {
        throw new ProviderError('invalid_response', 'The answer is not declared as JSON.', { status: 200 });
      }
      const { body, bytesOf } = parseBulkyObject(answer.bytes);
      const images = await picturesOf(body, call.count, {
        baseUrl,
        signal: call.signal,
        room: call.room,
        bytesOf,
      });
      return { images, usage: isObject(body.usage) ? body.usage : undefined };
    },
    stream: (call) =>
      new EventStream<ImageEvent>({
        open: () => http.postStream(imageRequest(call, true)),
        interpreter: new ImageEvents(call),
        maxEventCharacters: MAX_EVENT_CHARACTERS,
        room: call.room,
        credential,
        signal: call.signal,
      }),
  };
}
