/**
 * The body of POST /v1/chat/completions: the request of the chat-completion convention as the official `openai` client types
 * declare it (ChatCompletionCreateParams, version 7). What is known is checked for type and range; nothing unknown passes.
 */
import { type Static, Type } from 'typebox';

const nullable = <Schema extends Type.TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const strictObject = <Properties extends Type.TProperties>(properties: Properties) =>
  Type.Object(properties, { additionalProperties: false });

/** A union told apart by one property: the validator then reports the fault of the branch that was meant. */
const tagged = <Branches extends Type.TSchema[]>(property: string, branches: [...Branches]) =>
  Type.Unsafe<Static<Branches[number]>>({
    type: 'object',
    required: [property],
    discriminator: { propertyName: property },
    oneOf: branches,
  });

const MAX_MESSAGES = 10_000;
const cacheBreakpoint = Type.Optional(Type.Object({}, { additionalProperties: true }));

const textPart = strictObject({
  type: Type.Literal('text'),
  text: Type.String(),
  prompt_cache_breakpoint: cacheBreakpoint,
});
const imagePart = strictObject({
  type: Type.Literal('image_url'),
  image_url: strictObject({
    url: Type.String({ minLength: 1 }),
    detail: Type.Optional(Type.Enum(['auto', 'low', 'high', 'original'])),
  }),
  prompt_cache_breakpoint: cacheBreakpoint,
});
const audioPart = strictObject({
  type: Type.Literal('input_audio'),
  input_audio: strictObject({ data: Type.String({ minLength: 1 }), format: Type.Enum(['wav', 'mp3']) }),
  prompt_cache_breakpoint: cacheBreakpoint,
});
const filePart = strictObject({
  type: Type.Literal('file'),
  file: strictObject({
    file_data: Type.Optional(Type.String()),
    file_id: Type.Optional(Type.String()),
    filename: Type.Optional(Type.String()),
  }),
  prompt_cache_breakpoint: cacheBreakpoint,
});
const refusalPart = strictObject({ type: Type.Literal('refusal'), refusal: Type.String() });

/** Text alone, or parts. As a plain `type` list the validator reports one fault, not one a branch. */
const content = (parts: Type.TSchema[], options: { orNull?: boolean } = {}) =>
  Type.Unsafe<string | unknown[] | null>({
    type: options.orNull === true ? ['string', 'array', 'null'] : ['string', 'array'],
    minItems: 1,
    items: tagged('type', parts),
  });

const functionCall = strictObject({ name: Type.String(), arguments: Type.String() });
/** The official client's `parse()` and `stream()` put what they made of an answer into it. */
const parsed = Type.Optional(Type.Unknown());
const toolCall = tagged('type', [
  strictObject({
    id: Type.String(),
    type: Type.Literal('function'),
    function: strictObject({ ...functionCall.properties, parsed_arguments: parsed }),
  }),
  strictObject({
    id: Type.String(),
    type: Type.Literal('custom'),
    custom: strictObject({ name: Type.String(), input: Type.String() }),
  }),
]);

const instruction = <Role extends string>(role: Role) =>
  strictObject({
    role: Type.Literal(role),
    content: content([textPart]),
    name: Type.Optional(Type.String()),
  });

const message = tagged('role', [
  instruction('system'),
  instruction('developer'),
  strictObject({
    role: Type.Literal('user'),
    content: content([textPart, imagePart, audioPart, filePart]),
    name: Type.Optional(Type.String()),
  }),
  strictObject({
    role: Type.Literal('assistant'),
    content: Type.Optional(content([textPart, refusalPart], { orNull: true })),
    name: Type.Optional(Type.String()),
    refusal: Type.Optional(nullable(Type.String())),
    audio: Type.Optional(nullable(strictObject({ id: Type.String() }))),
    tool_calls: Type.Optional(Type.Array(toolCall)),
    function_call: Type.Optional(nullable(functionCall)),
    // answers of some models carry these, and clients send answers back as they came
    annotations: Type.Optional(Type.Array(Type.Unknown())),
    reasoning_content: Type.Optional(nullable(Type.String())),
    parsed,
  }),
  strictObject({ role: Type.Literal('tool'), content: content([textPart]), tool_call_id: Type.String() }),
  strictObject({ role: Type.Literal('function'), content: nullable(Type.String()), name: Type.String() }),
]);

const functionDefinition = strictObject({
  name: Type.String({ minLength: 1, maxLength: 64 }),
  description: Type.Optional(Type.String()),
  parameters: Type.Optional(nullable(Type.Object({}, { additionalProperties: true }))),
  strict: Type.Optional(nullable(Type.Boolean())),
});
const tool = tagged('type', [
  strictObject({ type: Type.Literal('function'), function: functionDefinition }),
  strictObject({
    type: Type.Literal('custom'),
    custom: strictObject({
      name: Type.String({ minLength: 1 }),
      description: Type.Optional(Type.String()),
      format: Type.Optional(Type.Object({}, { additionalProperties: true })),
    }),
  }),
]);

const responseFormat = tagged('type', [
  strictObject({ type: Type.Literal('text') }),
  strictObject({ type: Type.Literal('json_object') }),
  strictObject({
    type: Type.Literal('json_schema'),
    json_schema: strictObject({
      name: Type.String({ minLength: 1, maxLength: 64 }),
      description: Type.Optional(Type.String()),
      schema: Type.Optional(Type.Object({}, { additionalProperties: true })),
      strict: Type.Optional(nullable(Type.Boolean())),
    }),
  }),
]);

/** A choice by name or by object; objects are told apart by `type`. */
const nameOr = (names: string[], object: Type.TSchema) =>
  Type.Unsafe<string | Record<string, unknown>>({ anyOf: [{ type: 'string', enum: names }, object] });

const openObject = Type.Object({}, { additionalProperties: true });

export const ChatRequest = strictObject({
  model: Type.String({ minLength: 1, maxLength: 200 }),
  messages: Type.Array(message, { minItems: 1, maxItems: MAX_MESSAGES }),

  max_tokens: Type.Optional(nullable(Type.Integer({ minimum: 1 }))),
  max_completion_tokens: Type.Optional(nullable(Type.Integer({ minimum: 1 }))),
  n: Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: 128 }))),
  stream: Type.Optional(nullable(Type.Boolean())),
  stream_options: Type.Optional(
    nullable(
      strictObject({
        include_usage: Type.Optional(Type.Boolean()),
        include_obfuscation: Type.Optional(Type.Boolean()),
      }),
    ),
  ),

  temperature: Type.Optional(nullable(Type.Number({ minimum: 0, maximum: 2 }))),
  top_p: Type.Optional(nullable(Type.Number({ minimum: 0, maximum: 1 }))),
  frequency_penalty: Type.Optional(nullable(Type.Number({ minimum: -2, maximum: 2 }))),
  presence_penalty: Type.Optional(nullable(Type.Number({ minimum: -2, maximum: 2 }))),
  logit_bias: Type.Optional(
    nullable(Type.Record(Type.String(), Type.Number({ minimum: -100, maximum: 100 }))),
  ),
  logprobs: Type.Optional(nullable(Type.Boolean())),
  top_logprobs: Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: 20 }))),
  seed: Type.Optional(nullable(Type.Integer())),
  stop: Type.Optional(
    Type.Unsafe<string | string[] | null>({
      type: ['string', 'array', 'null'],
      maxItems: 16,
      items: { type: 'string' },
    }),
  ),

  tools: Type.Optional(Type.Array(tool, { maxItems: 512 })),
  tool_choice: Type.Optional(
    nameOr(
      ['none', 'auto', 'required'],
      tagged('type', [
        strictObject({ type: Type.Literal('function'), function: strictObject({ name: Type.String() }) }),
        strictObject({ type: Type.Literal('custom'), custom: strictObject({ name: Type.String() }) }),
        strictObject({
          type: Type.Literal('allowed_tools'),
          allowed_tools: strictObject({
            mode: Type.Enum(['auto', 'required']),
            tools: Type.Array(openObject),
          }),
        }),
      ]),
    ),
  ),
  parallel_tool_calls: Type.Optional(Type.Boolean()),
  functions: Type.Optional(Type.Array(functionDefinition, { minItems: 1, maxItems: 512 })),
  function_call: Type.Optional(nameOr(['none', 'auto'], strictObject({ name: Type.String() }))),

  response_format: Type.Optional(responseFormat),
  modalities: Type.Optional(nullable(Type.Array(Type.Enum(['text', 'audio'])))),
  audio: Type.Optional(
    nullable(
      strictObject({
        format: Type.Enum(['wav', 'aac', 'mp3', 'flac', 'opus', 'pcm16']),
        voice: Type.Union([Type.String(), openObject]),
      }),
    ),
  ),
  prediction: Type.Optional(
    nullable(strictObject({ type: Type.Literal('content'), content: content([textPart]) })),
  ),
  reasoning_effort: Type.Optional(
    nullable(Type.Enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])),
  ),
  verbosity: Type.Optional(nullable(Type.Enum(['low', 'medium', 'high']))),
  web_search_options: Type.Optional(openObject),
  moderation: Type.Optional(nullable(openObject)),

  metadata: Type.Optional(
    nullable(Type.Record(Type.String(), Type.String({ maxLength: 512 }), { maxProperties: 16 })),
  ),
  store: Type.Optional(nullable(Type.Boolean())),
  service_tier: Type.Optional(nullable(Type.Enum(['auto', 'default', 'flex', 'scale', 'priority', 'fast']))),
  prompt_cache_key: Type.Optional(nullable(Type.String())),
  prompt_cache_options: Type.Optional(openObject),
  prompt_cache_retention: Type.Optional(nullable(Type.Enum(['in_memory', 'in-memory', '24h']))),
  safety_identifier: Type.Optional(nullable(Type.String())),
  user: Type.Optional(Type.String()),
});
export type ChatRequest = Static<typeof ChatRequest>;
