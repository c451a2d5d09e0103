/**
 * What may stand in a catalogue file, as JSON Schemas: one for each kind of entry. `description` completes "must be …" in an
 * error, so each says what is allowed in words.
 */
import { type Static, type TSchema, Type } from 'typebox';

const PROVIDER_KINDS = ['openai', 'elevenlabs', 'x', 'sandbox'] as const;
export const MODEL_TYPES = ['chat', 'speech', 'transcription', 'image', 'video', 'gateway'] as const;
export type FileModelType = (typeof MODEL_TYPES)[number];

/** Tokens × price must stay an exact integer (2^53) with room to spare: 10^7 × 10^8 = 10^15. */
const MAX_TOKENS = 10_000_000;
const MAX_PRICE_AP = 100_000_000;
const MAX_INTEGER = 2 ** 31 - 1;

const closed = { additionalProperties: false };
const plainText = (minLength: number, maxLength: number) =>
  Type.String({
    minLength,
    maxLength,
    pattern: '^[^\\p{Cc}\\p{Cs}]*$', // no line breaks or other control characters, no halves of a character
    description: `one line of text, ${minLength} to ${maxLength} characters`,
  });
const name = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$',
  description: 'a name of up to 128 letters, digits and . _ : / @ + - that begins with a letter or digit',
});
const wholeNumber = (minimum: number, maximum: number) =>
  Type.Integer({ minimum, maximum, description: `a whole number from ${minimum} to ${maximum}` });
const oneOf = <const Words extends string[]>(words: readonly [...Words]) =>
  Type.Enum(words, { description: `one of ${words.join(', ')}` });
const list = <Item extends TSchema>(items: Item, minItems = 0) =>
  Type.Array(items, { minItems, description: minItems === 0 ? 'a list' : `a list of at least ${minItems}` });

export const FileSchema = Type.Object(
  {
    providers: Type.Optional(list(Type.Unknown())),
    models: Type.Optional(list(Type.Unknown())),
    voices: Type.Optional(list(Type.Unknown())),
  },
  { ...closed, minProperties: 1, description: 'a map with providers, models, voices' },
);

export const ProviderSchema = Type.Object(
  {
    name,
    kind: oneOf(PROVIDER_KINDS),
    base_url: Type.Optional(
      Type.String({
        format: 'http-address',
        description: 'an http:// or https:// address without credentials, query or fragment',
        writeOnly: true,
      }),
    ),
    credential_env: Type.Optional(
      Type.String({
        pattern: '^[A-Z_][A-Z0-9_]*$',
        maxLength: 128,
        description: 'the NAME of an environment variable (capitals, digits, _), never the credential itself',
        writeOnly: true, // an error does not repeat what may be a credential
      }),
    ),
  },
  { ...closed, description: 'a map that describes a provider' },
);
export type FileProvider = Static<typeof ProviderSchema>;

const RouteSchema = Type.Object(
  {
    provider: name,
    upstream_model: plainText(1, 200),
    priority: Type.Optional(wholeNumber(0, MAX_INTEGER)),
    weight: Type.Optional(wholeNumber(1, MAX_INTEGER)),
  },
  { ...closed, description: 'a map that describes a route' },
);

const modelFields = {
  id: name,
  type: oneOf(MODEL_TYPES),
  recommended: Type.Optional(Type.Boolean({ description: 'true or false' })),
  routes: list(RouteSchema, 1),
  pricing: Type.Unknown({ description: 'a price or a list of prices' }),
};
const tokens = wholeNumber(1, MAX_TOKENS);
const model = { ...closed, description: 'a map that describes a model' };

export const ChatModelSchema = Type.Object(
  { ...modelFields, max_tokens: tokens, context_tokens: tokens },
  model,
);
export const OtherModelSchema = Type.Object(modelFields, model);
/** What the service itself does: no provider is asked, so there are no routes. */
export const OperationSchema = Type.Object(
  { id: name, type: oneOf(['gateway']), pricing: modelFields.pricing },
  { ...closed, description: 'a map that describes an operation of the service: id, type gateway, pricing' },
);
/** For an entry whose type is wrong: the rest of it is looked at all the same. */
export const UntypedModelSchema = Type.Object(
  { ...modelFields, max_tokens: Type.Optional(tokens), context_tokens: Type.Optional(tokens) },
  model,
);
export type FileModel = Static<typeof UntypedModelSchema>;

const ap = wholeNumber(0, MAX_PRICE_AP);
const effective_at = Type.Optional(
  Type.String({ format: 'iso-time', description: 'an ISO 8601 date or time with its zone' }),
);
const size = Type.String({
  pattern: '^[1-9][0-9]{0,4}x[1-9][0-9]{0,4}$',
  description: 'WIDTHxHEIGHT in pixels, such as 1024x1024',
});
const quality = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,32}$',
  description: 'a word such as low, medium or high',
});
const unitPrice = Type.Object({ ap, effective_at }, { ...closed, description: 'a map with ap' });

/** A price of a model of each type; the unit follows from the type. */
export const PRICE_SCHEMAS: Readonly<Record<FileModelType, TSchema>> = {
  chat: Type.Object(
    { ap_in_per_1k: ap, ap_out_per_1k: ap, effective_at },
    { ...closed, description: 'a map with ap_in_per_1k and ap_out_per_1k' },
  ),
  speech: unitPrice,
  transcription: unitPrice,
  image: Type.Object(
    { size, quality, ap, effective_at },
    { ...closed, description: 'a map with size, quality and ap' },
  ),
  video: Type.Object(
    { size: Type.Optional(size), ap, effective_at },
    { ...closed, description: 'a map with ap and, where the price depends on it, size' },
  ),
  gateway: unitPrice,
};

export const PRICE_UNITS: Readonly<Record<FileModelType, string>> = {
  chat: 'per_1k_tokens',
  speech: 'per_1k_characters',
  transcription: 'per_10_seconds',
  image: 'per_image',
  video: 'per_second',
  gateway: 'per_call',
};

export interface FilePrice {
  readonly ap_in_per_1k?: number;
  readonly ap_out_per_1k?: number;
  readonly ap?: number;
  readonly size?: string;
  readonly quality?: string;
  readonly effective_at?: string;
}

export const VoiceSchema = Type.Object(
  {
    slug: name,
    name: plainText(1, 200),
    tagline: Type.Optional(plainText(0, 500)),
    provider: name,
    upstream_voice: plainText(1, 200),
    model: name,
  },
  { ...closed, description: 'a map that describes a voice' },
);
export type FileVoice = Static<typeof VoiceSchema>;
