/** The bodies of registering a character, of publishing (none), and of certifying a picture. */
import { type Static, Type } from 'typebox';

const nullable = <Schema extends Type.TSchema>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));
/** No control characters, no halves of a character. */
const line = (maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern: '^(?=.*\\S)[^\\p{Cc}\\p{Cs}]*$' });

const MAX_CHARACTER_PROMPT = 4000;
const MAX_NAME = 200;
const UUID = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';

export const CharacterRequest = Type.Object(
  {
    // a word in small letters; one that looks like an id would be taken for one
    slug: Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: '^(?![0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$',
    }),
    // one of both is enough
    name: Type.Object(
      { ja: Type.Optional(line(MAX_NAME)), en: Type.Optional(line(MAX_NAME)) },
      { additionalProperties: false, minProperties: 1 },
    ),
    prompt: Type.String({
      minLength: 1,
      maxLength: MAX_CHARACTER_PROMPT,
      pattern: '^(?=[^]*\\S)[^\\u0000\\p{Cs}]*$',
    }),
    reference_image: nullable(Type.String({ minLength: 1 })),
    public: nullable(Type.Boolean()),
    payee: nullable(
      Type.Object(
        { account_id: Type.Optional(Type.String({ pattern: UUID })), subject: Type.Optional(line(MAX_NAME)) },
        { additionalProperties: false, minProperties: 1, maxProperties: 1 },
      ),
    ),
    // hundredths of a percent
    royalty_bps: nullable(Type.Integer({ minimum: 0, maximum: 10_000 })),
  },
  { additionalProperties: false },
);
export type CharacterRequest = Static<typeof CharacterRequest>;

export const PublishRequest = Type.Object({}, { additionalProperties: false });

export const CertifyRequest = Type.Object(
  {
    title: nullable(line(MAX_NAME)),
    holder_name: nullable(line(MAX_NAME)),
    // of the generation that the path names
    candidate_id: nullable(Type.String({ pattern: UUID })),
  },
  { additionalProperties: false },
);
export type CertifyRequest = Static<typeof CertifyRequest>;
