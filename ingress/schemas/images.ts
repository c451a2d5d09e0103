/**
 * The bodies of POST /v1/images/generations and /v1/images/edits: the image convention of the official `openai` client
 * (ImageGenerateParams, ImageEditParams, version 7) as far as every provider here can honour it, and this service's own
 * fields. Pictures in JSON are base64; multipart has taken them out before this is looked at (routes/images/read.ts).
 */
import { type Static, Type } from 'typebox';

const nullable = <Schema extends Type.TSchema>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** As the convention says it for its image models. */
export const MAX_PROMPT_CHARACTERS = 32_000;
export const MAX_PICTURES = 16;
export const MAX_IMAGES_PER_REQUEST = 4;
const MAX_PARTIAL_IMAGES = 3;
const MAX_NAME = 512;

const picture = Type.String({ minLength: 1 });

const shared = {
  model: nullable(Type.String({ minLength: 1, maxLength: 200 })),
  // that it is there and not empty has a code of its own
  prompt: nullable(Type.String({ maxLength: MAX_PROMPT_CHARACTERS })),
  n: nullable(Type.Integer({ minimum: 1, maximum: MAX_IMAGES_PER_REQUEST })),
  // which of these there are is the price table's to say
  size: nullable(Type.String({ minLength: 1, maxLength: 32 })),
  quality: nullable(Type.String({ minLength: 1, maxLength: 32 })),
  background: nullable(Type.Enum(['transparent', 'opaque', 'auto'])),
  // those that can be produced have a code of their own
  output_format: nullable(Type.String({ maxLength: 32 })),
  output_compression: nullable(Type.Integer({ minimum: 0, maximum: 100 })),
  moderation: nullable(Type.Enum(['low', 'auto'])),
  partial_images: nullable(Type.Integer({ minimum: 0, maximum: MAX_PARTIAL_IMAGES })),
  stream: nullable(Type.Boolean()),
  response_format: nullable(Type.Enum(['url', 'b64_json'])),
  user: nullable(Type.String({ maxLength: MAX_NAME })),
  safety_identifier: nullable(Type.String({ maxLength: MAX_NAME })),
  seed: nullable(Type.Integer({ minimum: 0, maximum: 2 ** 32 - 1 })),
  character: nullable(Type.String({ minLength: 1, maxLength: 200 })),
  cache: nullable(Type.Boolean()),
};

export const ImageGenerationRequest = Type.Object(shared, { additionalProperties: false });
export type ImageGenerationRequest = Static<typeof ImageGenerationRequest>;

export const ImageEditRequest = Type.Object(
  {
    ...shared,
    input_fidelity: nullable(Type.Enum(['high', 'low'])),
    reference_image: nullable(picture),
    reference_images: nullable(Type.Array(picture, { maxItems: MAX_PICTURES })),
    image: Type.Optional(
      Type.Unsafe<string | string[] | null>({
        type: ['string', 'array', 'null'],
        minLength: 1,
        maxItems: MAX_PICTURES,
        items: { type: 'string', minLength: 1 },
      }),
    ),
    mask: nullable(picture),
  },
  { additionalProperties: false },
);
export type ImageEditRequest = Static<typeof ImageEditRequest>;
