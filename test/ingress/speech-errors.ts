/** What speech is refused with over HTTP; run, and checked to be complete, by errors.test.ts. */
import { FORM_HEADERS, form } from '../helpers/form.ts';
import { makePng } from '../helpers/pictures.ts';
import { MODEL } from '../helpers/service.ts';
import { SPEECH_MODEL, STUDIO_VOICE, VOICE } from '../helpers/speech-models.ts';
import { makeWav } from '../helpers/wav.ts';
import type { Case } from './error-case.ts';

const SPEECH = '/v1/audio/speech';
const TRANSCRIPTIONS = '/v1/audio/transcriptions';
const AUDIO_FORMATS = ['mp3', 'wav', 'opus', 'flac', 'aac', 'pcm'];
const FILE_TYPES = ['mp3', 'mp4', 'm4a', 'wav', 'webm', 'ogg', 'flac'];
const EL_FORMATS = ['mp3_44100_128', 'pcm_24000', 'wav_24000'];
const MAX_CHARACTERS = 5000;

/** A speech call by a new caller. */
function call(path: string, body: unknown, siblings: object = {}): Case['given'] {
  return async (service, as) => {
    const { secret } = await service.makeCaller(as);
    return { siblings, call: (options) => service.post(path, { secret, body, ...options }) };
  };
}

const say = (changes: object, siblings: object = {}, path = SPEECH): Case['given'] =>
  call(path, { input: 'Hello', voice: VOICE, ...changes }, siblings);

function hear(
  fields: Record<string, string>,
  files: Record<string, Buffer>,
  siblings: object = {},
): Case['given'] {
  return async (service, as) => {
    const { secret } = await service.makeCaller(as);
    return {
      siblings,
      call: (options) =>
        service.post(TRANSCRIPTIONS, {
          secret,
          body: form(fields, files),
          ...options,
          headers: { ...FORM_HEADERS, ...options.headers },
        }),
    };
  };
}

const SECOND = makeWav(1000);
const EL = '/v1/el/tts';
const CLIENT = `/v1/el/v1/text-to-speech/${VOICE}`;

export const SPEECH_CASES: readonly Case[] = [
  { code: 'text_required', when: 'there is none', given: call(SPEECH, { voice: VOICE }, { param: 'input' }) },
  { code: 'text_required', when: 'it is blank', given: say({ input: ' \n\t' }, { param: 'input' }) },
  {
    code: 'text_required',
    when: 'generate has none',
    given: call('/v1/tts/generate', { slug: VOICE }, { param: 'text' }),
  },
  {
    code: 'text_required',
    when: 'the second family has none',
    given: call(EL, { voice: VOICE, text: '' }, { param: 'text' }),
  },
  {
    code: 'text_too_long',
    when: 'it has a character too many, counted in code points',
    given: say(
      { input: '🙂'.repeat(MAX_CHARACTERS + 1) },
      { param: 'input', max_characters: MAX_CHARACTERS },
    ),
  },
  {
    code: 'text_too_long',
    when: 'it is much too long',
    given: say({ input: 'x'.repeat(500_000) }, { param: 'input', max_characters: MAX_CHARACTERS }),
  },
  {
    code: 'invalid_parameter',
    when: 'the text has half of a surrogate pair',
    given: say({ input: 'half \ud83d' }, { param: 'input' }),
  },
  {
    code: 'invalid_parameter',
    when: 'there is no voice',
    given: call(SPEECH, { input: 'Hello' }, { param: 'voice' }),
  },
  {
    code: 'invalid_parameter',
    when: 'there is no such voice',
    given: say({ voice: 'nobody' }, { param: 'voice' }),
  },
  {
    code: 'invalid_parameter',
    when: 'generate names no such voice',
    given: call('/v1/audio/generate', { text: 'Hello', slug: 'nobody' }, { param: 'slug' }),
  },
  {
    code: 'invalid_parameter',
    when: 'the model has no way to the voice',
    given: say(
      { voice: STUDIO_VOICE, model: 'tts_v3' },
      { param: 'voice', reason: 'voice_of_another_model' },
    ),
  },
  {
    code: 'invalid_parameter',
    when: 'the voice is left out of the second family',
    given: call(EL, { text: 'Hello', voice: STUDIO_VOICE }, { param: 'voice' }),
  },
  {
    code: 'invalid_parameter',
    when: 'the speed is out of range',
    given: say({ speed: 4.5 }, { param: 'speed' }),
  },
  {
    code: 'unsupported_format',
    when: 'speech of that format is not made',
    given: say({ response_format: 'midi' }, { param: 'response_format', allowed: AUDIO_FORMATS }),
  },
  {
    code: 'unsupported_format',
    when: 'the second family has no such format',
    given: call(
      `${CLIENT}?output_format=ulaw_8000`,
      { text: 'Hello' },
      {
        param: 'output_format',
        allowed: EL_FORMATS,
      },
    ),
  },
  {
    code: 'unsupported_parameter',
    when: 'speech is asked for as events',
    given: say({ stream_format: 'sse' }, { param: 'stream_format' }),
  },
  {
    code: 'unsupported_parameter',
    when: 'a model that would read tags aloud is given one',
    given: call(
      EL,
      { text: '[whispers] Hello', voice: VOICE, model: 'tts_multilingual_v2' },
      {
        param: 'text',
        reason: 'expression_tag',
      },
    ),
  },
  {
    code: 'unsupported_parameter',
    when: 'an option of the second family is one that is not kept here',
    given: call(CLIENT, { text: 'Hello', previous_request_ids: [] }, { param: 'previous_request_ids' }),
  },
  {
    code: 'unsupported_parameter',
    when: 'the query of the second family asks for more',
    given: call(
      `${CLIENT}?optimize_streaming_latency=3`,
      { text: 'Hello' },
      {
        param: 'optimize_streaming_latency',
      },
    ),
  },
  {
    code: 'model_not_found',
    when: 'a chat model is to speak',
    given: say({ model: MODEL }, { param: 'model' }),
  },
  {
    code: 'model_not_found',
    when: 'the second family has no such model',
    given: call(EL, { text: 'Hello', voice: VOICE, model: SPEECH_MODEL }, { param: 'model' }),
  },
  {
    code: 'model_not_allowed',
    when: 'the key may not use the voice’s own model',
    given: async (service, as) => {
      const { secret } = await service.makeCaller({ ...as, allowedModels: [] });
      const body = { input: 'Hello', voice: VOICE };
      return {
        siblings: { param: 'model' },
        call: (options) => service.post(SPEECH, { secret, body, ...options }),
      };
    },
  },
  {
    code: 'insufficient_ap',
    when: 'the balance does not pay for the text',
    given: async (service, as) => {
      const { secret } = await service.makeCaller({ ...as, balanceAp: 1 });
      const body = { input: 'Hello, hello', voice: VOICE };
      return {
        siblings: { required_ap: 3, available_ap: 1, held_ap: 0 },
        call: (options) => service.post(SPEECH, { secret, body, ...options }),
      };
    },
  },
  {
    code: 'not_found',
    when: 'no such speech is the caller’s',
    given: async (service, as) => {
      const { secret } = await service.makeCaller(as);
      const path = '/v1/audio/file/01900000-0000-7000-8000-000000000000';
      return { call: (options) => service.get(path, { secret, ...options }) };
    },
  },
  {
    code: 'expired',
    when: 'the speech is past its retention',
    given: async (service, as) => {
      const { secret } = await service.makeCaller(as);
      const { headers } = await service.post(SPEECH, { secret, body: { input: 'Hello', voice: VOICE } });
      const id = headers.get('x-svc-request-id');
      await service.pool.query('update app.assets set expires_at = now() where request_id = $1', [id]);
      return { call: (options) => service.get(`/v1/audio/file/${id}`, { secret, ...options }) };
    },
  },
  {
    code: 'content_moderated',
    when: 'the provider declines the text',
    leavesFailedRequest: true,
    given: say({ input: '[[sandbox:error=moderated]] Hello' }),
  },
  {
    code: 'not_found',
    when: 'speech is only posted',
    isStranger: true,
    status: 405,
    given: (service) => ({ call: (options) => service.get(SPEECH, options) }),
  },
  {
    code: 'not_authenticated',
    when: 'the second family’s header is sent to another',
    isStranger: true,
    given: async (service) => {
      const { secret } = await service.makeCaller();
      return {
        call: (options) =>
          service.get('/v1/audio/voices', { headers: { 'xi-api-key': secret, ...options.headers } }),
      };
    },
  },
  {
    code: 'invalid_api_key',
    when: 'the second family’s header has a key nobody knows',
    isStranger: true,
    given: (service) => ({
      call: (options) =>
        service.get('/v1/el/voices', { headers: { 'xi-api-key': 'svc_live_x', ...options.headers } }),
    }),
  },
  {
    code: 'invalid_json',
    when: 'a recording does not come in a form',
    given: call(TRANSCRIPTIONS, { file: 'audio.mp3' }),
  },
  {
    code: 'invalid_parameter',
    when: 'there is no recording',
    given: hear({ model: 'x' }, {}, { param: 'file' }),
  },
  {
    code: 'invalid_parameter',
    when: 'the recording is empty',
    given: hear({}, { file: Buffer.alloc(0) }, { param: 'file' }),
  },
  {
    code: 'unsupported_format',
    when: 'the recording is a picture, whatever its name',
    given: hear({}, { file: makePng(8, 8) }, { param: 'file', allowed: FILE_TYPES }),
  },
  {
    code: 'unsupported_parameter',
    when: 'the recording comes under another name',
    given: hear({}, { audio: SECOND }, { param: 'audio' }),
  },
  {
    code: 'unsupported_parameter',
    when: 'a transcription is asked for as a stream',
    given: hear({ stream: 'true' }, { file: SECOND }, { param: 'stream' }),
  },
  {
    code: 'invalid_parameter',
    when: 'there is no such format of a transcription',
    given: hear({ response_format: 'docx' }, { file: SECOND }, { param: 'response_format' }),
  },
  {
    code: 'invalid_parameter',
    when: 'times are asked for where they are not shown',
    given: hear(
      { 'timestamp_granularities[]': 'word' },
      { file: SECOND },
      { param: 'timestamp_granularities' },
    ),
  },
  {
    code: 'model_not_found',
    when: 'a speech model is to transcribe',
    given: hear({ model: SPEECH_MODEL }, { file: SECOND }, { param: 'model' }),
  },
];
