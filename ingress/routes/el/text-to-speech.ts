/**
 * POST /v1/el/v1/text-to-speech/{voice} and its /stream: as `@elevenlabs/elevenlabs-js` calls them. Both give audio as it is made:
 * that client reads either as a stream.
 */
import { ServiceError } from '../../../core/errors.ts';
import { type Context, callerOf, type Handler } from '../../context.ts';
import { readJsonBody } from '../../json-body.ts';
import { oneOf } from '../../parameters.ts';
import { ElTextToSpeechRequest } from '../../schemas/audio.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { requireElSpeaker } from '../../voices.ts';
import { type SpeechBody, speak } from '../audio/speak.ts';
import { maxSpeechBodyBytes, requireText } from '../audio/text.ts';
import { optionsOf, requireOutputFormat } from './read.ts';

const validate = makeValidator(ElTextToSpeechRequest);
/** What they ask for is how it is anyway; anything else in the query nobody would honour. */
const QUERY: ReadonlySet<string> = new Set(['output_format', 'enable_logging']);

export function postTextToSpeech(services: Services): Handler {
  const { config, catalogue, now } = services;
  return async (ctx) => {
    const { raw, value } = await readJsonBody(ctx, maxSpeechBodyBytes(config));
    const asked = validate(value);
    const body: SpeechBody = {
      ...requireText(asked.text, 'text', config),
      textParam: 'text',
      format: formatOf(ctx),
      speed: null,
      options: optionsOf(asked),
      // the voice is in the path, which belongs to a request anyway; the format is in the query
      raw: Buffer.concat([raw, Buffer.from(`\n${ctx.querystring}`)]),
    };
    const wanted = {
      voice: String(ctx.params.voice),
      voiceParam: 'voice_id',
      model: asked.model_id ?? undefined,
      modelParam: 'model_id',
    };
    await speak(ctx, services, body, requireElSpeaker(catalogue.current(), now(), callerOf(ctx), wanted));
  };
}

function formatOf(ctx: Context): SpeechBody['format'] {
  const unknown = Object.keys(ctx.query).find((name) => !QUERY.has(name));
  if (unknown !== undefined) throw new ServiceError('unsupported_parameter', { param: unknown });
  if (oneOf(ctx, 'enable_logging', ['true', 'false']) === 'false')
    throw new ServiceError('unsupported_parameter', { param: 'enable_logging' });
  const { output_format: asked } = ctx.query;
  if (Array.isArray(asked)) throw new ServiceError('invalid_parameter', { param: 'output_format' });
  return requireOutputFormat(asked);
}
