/**
 * The bodies of the speech routes: the speech and transcription conventions of the official `openai` client (SpeechCreateParams,
 * TranscriptionCreateParams, version 7) as far as every provider here can honour them, this service's own `generate` and
 * `estimate`, and the second family, which follows `@elevenlabs/elevenlabs-js` (BodyTextToSpeechFull, version 2).
 */
import { type Static, Type } from 'typebox';
import { TRANSCRIPT_FORMATS } from '../../core/speech.ts';

const nullable = <Schema extends Type.TSchema>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));
const closed = { additionalProperties: false };

const MAX_NAME = 200;
const MAX_INSTRUCTIONS = 4096;
/** As the convention says it: longer ones are cut by providers without a word. */
const MAX_PROMPT = 4096;
const SPEED = { minimum: 0.25, maximum: 4 };

const name = Type.String({ minLength: 1, maxLength: MAX_NAME });
// that it is there, not empty and not too long has codes of its own
const text = nullable(Type.String());
// those that can be made have a code of their own
const response_format = nullable(Type.String({ maxLength: 32 }));
const speed = nullable(Type.Number(SPEED));

export const SpeechRequest = Type.Object(
  {
    input: text,
    voice: Type.Unsafe<string | { readonly id: string }>({
      type: ['string', 'object'],
      minLength: 1,
      maxLength: MAX_NAME,
      required: ['id'],
      additionalProperties: false,
      properties: { id: { type: 'string', minLength: 1, maxLength: MAX_NAME } },
    }),
    model: nullable(name),
    response_format,
    speed,
    instructions: nullable(Type.String({ maxLength: MAX_INSTRUCTIONS })),
    stream_format: nullable(Type.Enum(['sse', 'audio'])),
  },
  closed,
);

export const GenerateRequest = Type.Object({ text, slug: name, response_format, speed }, closed);

export const EstimateRequest = Type.Object({ text, voice: nullable(name), model: nullable(name) }, closed);

export const TranscriptionRequest = Type.Object(
  {
    model: nullable(name),
    response_format: nullable(Type.Enum([...TRANSCRIPT_FORMATS])),
    language: nullable(Type.String({ pattern: '^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$', maxLength: 35 })),
    prompt: nullable(Type.String({ maxLength: MAX_PROMPT })),
    temperature: nullable(Type.Number({ minimum: 0, maximum: 1 })),
    timestamp_granularities: nullable(Type.Array(Type.Enum(['word', 'segment']), { maxItems: 2 })),
    stream: nullable(Type.Boolean()),
  },
  closed,
);
export type TranscriptionRequest = Static<typeof TranscriptionRequest>;

const share = Type.Number({ minimum: 0, maximum: 1 });

/** What a voice of the second family can be told; passed on as it is. */
const elOptions = {
  language_code: nullable(Type.String({ pattern: '^[a-z]{2,3}$' })),
  voice_settings: nullable(
    Type.Object(
      {
        stability: nullable(share),
        similarity_boost: nullable(share),
        style: nullable(share),
        use_speaker_boost: nullable(Type.Boolean()),
        speed: nullable(Type.Number(SPEED)),
      },
      closed,
    ),
  ),
  seed: nullable(Type.Integer({ minimum: 0, maximum: 2 ** 32 - 1 })),
  previous_text: nullable(Type.String({ maxLength: MAX_PROMPT })),
  next_text: nullable(Type.String({ maxLength: MAX_PROMPT })),
  apply_text_normalization: nullable(Type.Enum(['auto', 'on', 'off'])),
  apply_language_text_normalization: nullable(Type.Boolean()),
};

/** POST /v1/el/tts */
export const ElTtsRequest = Type.Object(
  { text, voice: name, model: nullable(name), output_format: nullable(Type.String()), ...elOptions },
  closed,
);

/** POST /v1/el/v1/text-to-speech/{voice}: the client's own body. */
export const ElTextToSpeechRequest = Type.Object({ text, model_id: nullable(name), ...elOptions }, closed);
export type ElOptions = Omit<Static<typeof ElTextToSpeechRequest>, 'text' | 'model_id'>;
