/** Speech from a server of the OpenAI convention, streamed as it is produced. */
import { AUDIO_CONTENT_TYPES, AUDIO_FORMATS } from '../../../core/audio/formats.ts';
import { AudioStream, MAX_SPEECH_BYTES } from '../audio-stream.ts';
import { ProviderError, type SpeechCall, type SpeechProvider } from '../provider.ts';
import { refuseUnknown } from '../speech-options.ts';
import { answerError } from './errors.ts';
import type { OpenAiConnection } from './images.ts';

const OPTIONS: ReadonlySet<string> = new Set(['instructions']);

export function makeOpenAiSpeech({ http, credential, headers }: OpenAiConnection): SpeechProvider {
  const bodyOf = (call: SpeechCall): string =>
    JSON.stringify({
      ...call.options,
      model: call.upstreamModel,
      input: call.text,
      voice: call.upstreamVoice,
      response_format: call.format,
      speed: call.speed,
    });
  return {
    formats: AUDIO_FORMATS,
    speak(call) {
      return new AudioStream({
        open: () => {
          refuseUnknown(call.options, OPTIONS);
          return http.postStream({
            path: '/audio/speech',
            headers: [
              ...headers(call.requestId, AUDIO_CONTENT_TYPES[call.format]),
              'content-type',
              'application/json',
            ],
            body: bodyOf(call),
            signal: call.signal,
            maxResponseBytes: MAX_SPEECH_BYTES,
          });
        },
        format: call.format,
        failure: (exchange, text) =>
          answerError(exchange.status, exchange.headers, text, credential) ??
          new ProviderError('invalid_response', 'The answer is not declared as audio.', { status: 200 }),
        signal: call.signal,
      });
    },
  };
}
