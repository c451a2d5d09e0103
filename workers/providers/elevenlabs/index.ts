/**
 * Speech and voices of a server of the ElevenLabs convention: a base address (with its `/v1`) and a credential that travels as
 * `xi-api-key`. Always its streaming path, which gives the same audio as the other, sooner.
 */
import { AudioStream, MAX_SPEECH_BYTES } from '../audio-stream.ts';
import type { CheckableProvider, ProviderCheck } from '../check.ts';
import { checkCredential, parseBaseUrl } from '../configuration.ts';
import { makeHttpClient } from '../http.ts';
import type { HttpLimits } from '../http-exchange.ts';
import { type ProviderConfig, ProviderError, type ProviderVoice, type SpeechCall } from '../provider.ts';
import { answerError } from './errors.ts';
import { speechRequest } from './request.ts';

const LIST_TIMEOUT_MS = 15_000;
const MAX_LIST_BYTES = 8 * 1024 * 1024;

export function makeElevenLabsProvider(
  config: ProviderConfig,
  limits: Partial<HttpLimits> = {},
): CheckableProvider {
  const baseUrl = parseBaseUrl(config);
  checkCredential(config);
  const { credential } = config;
  const http = makeHttpClient(baseUrl, limits);
  const authorization = credential === undefined ? [] : ['xi-api-key', credential];

  function speak(call: SpeechCall): AudioStream {
    return new AudioStream({
      open: () => {
        const { path, accept, body } = speechRequest(call);
        return http.postStream({
          path,
          headers: [...authorization, 'accept', accept, 'content-type', 'application/json'],
          body,
          signal: call.signal,
          maxResponseBytes: MAX_SPEECH_BYTES,
        });
      },
      format: call.format,
      failure: (exchange, text) => answerError(exchange.status, exchange.headers, text, credential),
      signal: call.signal,
    });
  }

  /** A list of objects: of `field`, or the answer itself. */
  async function list(
    path: string,
    field: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<unknown[]> {
    const timeout = AbortSignal.timeout(LIST_TIMEOUT_MS);
    try {
      const answer = await http.get({
        path,
        headers: [...authorization, 'accept', 'application/json'],
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        maxResponseBytes: MAX_LIST_BYTES,
      });
      const found = answer.status === 200 ? listIn(answer.text, field) : undefined;
      if (found === undefined) throw answerError(answer.status, answer.headers, answer.text, credential);
      return found;
    } catch (error) {
      signal?.throwIfAborted();
      if (timeout.aborted) throw new ProviderError('unavailable', 'The provider is too slow to answer.');
      throw error;
    }
  }

  async function voices(signal: AbortSignal): Promise<readonly ProviderVoice[]> {
    return (await list('/voices', 'voices', signal)).map((voice) => {
      const { voice_id: id, name } = (voice ?? {}) as Record<string, unknown>;
      if (typeof id !== 'string' || id === '')
        throw new ProviderError('invalid_response', 'A voice has no id.');
      return { upstreamVoice: id, name: typeof name === 'string' ? name : id };
    });
  }

  async function check(signal?: AbortSignal): Promise<ProviderCheck> {
    const models = await list('/models', undefined, signal);
    return {
      models: models.flatMap((model) => {
        const { model_id: id } = (model ?? {}) as Record<string, unknown>;
        return typeof id === 'string' ? [id] : [];
      }),
    };
  }

  return {
    name: config.name,
    kind: config.kind,
    speech: { formats: ['mp3', 'pcm'], speak, voices },
    check,
    close: (graceMs) => http.close(graceMs),
  };
}

function listIn(text: string, field: string | undefined): unknown[] | undefined {
  try {
    const body: unknown = JSON.parse(text);
    const value = field === undefined ? body : (body as Record<string, unknown> | null)?.[field];
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
