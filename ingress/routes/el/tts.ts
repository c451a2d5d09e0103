/** POST /v1/el/tts: a text, a voice of the second family, and one of its two models. */
import { callerOf, type Handler } from '../../context.ts';
import { readJsonBody } from '../../json-body.ts';
import { ElTtsRequest } from '../../schemas/audio.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { requireElSpeaker } from '../../voices.ts';
import { type SpeechBody, speak } from '../audio/speak.ts';
import { maxSpeechBodyBytes, requireText } from '../audio/text.ts';
import { optionsOf, requireOutputFormat } from './read.ts';

const validate = makeValidator(ElTtsRequest);

export function postElTts(services: Services): Handler {
  const { config, catalogue, now } = services;
  return async (ctx) => {
    const { raw, value } = await readJsonBody(ctx, maxSpeechBodyBytes(config));
    const asked = validate(value);
    const body: SpeechBody = {
      ...requireText(asked.text, 'text', config),
      textParam: 'text',
      format: requireOutputFormat(asked.output_format),
      speed: null,
      options: optionsOf(asked),
      raw,
    };
    const wanted = {
      voice: asked.voice,
      voiceParam: 'voice',
      model: asked.model ?? undefined,
      modelParam: 'model',
    };
    await speak(ctx, services, body, requireElSpeaker(catalogue.current(), now(), callerOf(ctx), wanted));
  };
}
