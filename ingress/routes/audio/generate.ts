/** POST /v1/audio/generate, /v1/tts/generate: a text and the slug of a voice. */
import { callerOf, type Handler } from '../../context.ts';
import { readJsonBody } from '../../json-body.ts';
import { GenerateRequest } from '../../schemas/audio.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { requireSpeaker } from '../../voices.ts';
import { requireFormat, type SpeechBody, speak } from './speak.ts';
import { maxSpeechBodyBytes, requireText } from './text.ts';

const validate = makeValidator(GenerateRequest);

export function postGenerate(services: Services): Handler {
  const { config, catalogue, now } = services;
  return async (ctx) => {
    const { raw, value } = await readJsonBody(ctx, maxSpeechBodyBytes(config));
    const asked = validate(value);
    const body: SpeechBody = {
      ...requireText(asked.text, 'text', config),
      textParam: 'text',
      format: requireFormat(asked.response_format),
      speed: asked.speed ?? null,
      options: {},
      raw,
    };
    const wanted = { voice: asked.slug, voiceParam: 'slug', model: undefined };
    await speak(ctx, services, body, requireSpeaker(catalogue.current(), now(), callerOf(ctx), wanted));
  };
}
