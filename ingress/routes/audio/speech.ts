/** POST /v1/audio/speech, /v1/tts/speech: the speech convention. */
import { ServiceError } from '../../../core/errors.ts';
import { callerOf, type Handler } from '../../context.ts';
import { readJsonBody } from '../../json-body.ts';
import { SpeechRequest } from '../../schemas/audio.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { requireSpeaker } from '../../voices.ts';
import { requireFormat, type SpeechBody, speak } from './speak.ts';
import { maxSpeechBodyBytes, requireText } from './text.ts';

const validate = makeValidator(SpeechRequest);

export function postSpeech(services: Services): Handler {
  const { config, catalogue, now } = services;
  return async (ctx) => {
    const { raw, value } = await readJsonBody(ctx, maxSpeechBodyBytes(config));
    const asked = validate(value);
    const body: SpeechBody = {
      ...requireText(asked.input, 'input', config),
      textParam: 'input',
      format: requireFormat(asked.response_format),
      speed: asked.speed ?? null,
      options: asked.instructions ? { instructions: asked.instructions } : {},
      raw,
    };
    if (asked.stream_format === 'sse') {
      throw new ServiceError('unsupported_parameter', { param: 'stream_format' });
    }
    const voice = typeof asked.voice === 'string' ? asked.voice : asked.voice.id;
    const wanted = { voice, voiceParam: 'voice', model: asked.model ?? undefined };
    await speak(ctx, services, body, requireSpeaker(catalogue.current(), now(), callerOf(ctx), wanted));
  };
}
