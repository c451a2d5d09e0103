/**
 * Token counts by gpt-tokenizer (o200k), for answers whose provider reports no usage and for the sandbox. Loaded when
 * first needed: it takes 0.14 s and 75 MB, which a worker whose providers all report usage never spends.
 *
 * Time is bounded: the texts of a request are counted exactly up to `EXACT_CHARACTERS`, and longer ones by samples of that many, in slices
 * with a turn of the event loop between them. Measured: these 20,000 characters take 2 ms of English, 10 ms of Japanese, under
 * 50 ms of the worst text we found; one slice holds the loop for under 10 ms then, and far under 1 ms as a rule.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

const EXACT_CHARACTERS = 20_000;
/** Of a longer text, this many pieces that make up as much. */
const SAMPLES = 10;
const SLICE_CHARACTERS = 4_096;
/** The tokenizer's time grows with the square of an unbroken run (`aaaa…`); longer ones are counted in pieces of this. */
const RUN_CHARACTERS = 96;
const LONG_RUN = new RegExp(
  `[\\p{L}\\p{M}]{${RUN_CHARACTERS + 1}}|[^\\s\\p{L}\\p{N}]{${RUN_CHARACTERS + 1}}|\\s{${RUN_CHARACTERS + 1}}`,
  'u',
);
/** The library keeps merges of past texts; its own limit is ten times this. */
const MERGE_CACHE_ENTRIES = 10_000;

/** Per message, per name, and to open the answer: the figures of the convention's own counting recipe. */
const TOKENS_PER_MESSAGE = 3;
const TOKENS_PER_NAME = 1;
const TOKENS_OF_REPLY_START = 3;
/** An image at low detail, and one of unknown size at high detail (1024 × 1024: 85 + 4 tiles of 170). */
const TOKENS_OF_LOW_IMAGE = 85;
const TOKENS_OF_HIGH_IMAGE = 765;
/** Ten tokens a second of 16 kbit/s and more; documents at about three bytes a character of text. All of base64 characters. */
const BASE64_CHARACTERS_PER_AUDIO_TOKEN = 3_200;
const BASE64_CHARACTERS_PER_FILE_TOKEN = 16;

type Fields = Readonly<Record<string, unknown>>;

export interface Tokenizer {
  /** Both take a time that grows with the length only, whatever the text. */
  countTokens(text: string): number;
  encode(text: string): number[];
  /** Whole characters, token by token. Give it all tokens of a text: the library keeps half a character for its next call. */
  decodeGenerator(tokens: Iterable<number>): Generator<string>;
  /** The text of one token; `undefined` when there is no such token or it is not whole characters. */
  textOfToken(token: number): string | undefined;
}

let loading: Promise<Tokenizer> | undefined;

/** Also a way to load it beforehand. Special tokens (`<|endoftext|>`) in a text are counted as the text they are. */
export function loadTokenizer(): Promise<Tokenizer> {
  loading ??= Promise.all([
    import('gpt-tokenizer/encoding/o200k_base'),
    import('gpt-tokenizer/bpeRanks/o200k_base'),
  ]).then(([library, ranks]) => {
    library.setMergeCacheSize(MERGE_CACHE_ENTRIES);
    const options = { disallowedSpecial: new Set<string>() };
    return {
      countTokens: (text) =>
        slicesOf(text).reduce((sum, slice) => sum + library.countTokens(slice, options), 0),
      encode: (text) => slicesOf(text).flatMap((slice) => library.encode(slice, options)),
      decodeGenerator: library.decodeGenerator,
      textOfToken: (token) => {
        const entry = ranks.default[token];
        return typeof entry === 'string' ? entry : undefined;
      },
    };
  });
  return loading;
}

export function countTextTokens(text: string): Promise<number> {
  return countTexts([text]);
}

/** Texts counted each by itself, or by samples of them all when they are long together. */
async function countTexts(texts: readonly string[]): Promise<number> {
  const tokenizer = await loadTokenizer();
  const length = lengthOf(texts);
  const counted = length > EXACT_CHARACTERS ? samplesOf(texts.join('\n')) : texts;
  let lengthThisTurn = 0;
  let tokens = 0;
  for (const slice of counted.flatMap(slicesOf)) {
    if (lengthThisTurn >= SLICE_CHARACTERS) {
      await nextTurn();
      lengthThisTurn = 0;
    }
    tokens += tokenizer.countTokens(slice);
    lengthThisTurn += slice.length;
  }
  return counted === texts ? tokens : Math.ceil((tokens * length) / lengthOf(counted));
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}

/** `EXACT_CHARACTERS` of a text that is longer, from all over it, so that how it begins does not decide what it counts. */
function samplesOf(text: string): string[] {
  const step = text.length / SAMPLES;
  return Array.from({ length: SAMPLES }, (_, index) => {
    const start = Math.floor(index * step);
    return text.slice(start, start + EXACT_CHARACTERS / SAMPLES);
  });
}

/** A text in pieces that the tokenizer takes in its stride. */
function slicesOf(text: string): string[] {
  const slices: string[] = [];
  for (let start = 0; start < text.length; ) {
    const end = sliceEnd(text, start);
    const slice = text.slice(start, end);
    if (LONG_RUN.test(slice)) slices.push(...shortPiecesOf(slice));
    else slices.push(slice);
    start = end;
  }
  return slices;
}

/** Cuts where a space begins if one is near, since a word and the space before it are one token, and never within a character. */
function sliceEnd(text: string, start: number): number {
  const end = start + SLICE_CHARACTERS;
  if (end >= text.length) return text.length;
  const space = text.lastIndexOf(' ', end);
  if (space > end - RUN_CHARACTERS) return space;
  return isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end;
}

function shortPiecesOf(slice: string): string[] {
  const pieces: string[] = [];
  for (let start = 0; start < slice.length; ) {
    let end = Math.min(start + RUN_CHARACTERS, slice.length);
    if (end < slice.length && isHighSurrogate(slice.charCodeAt(end - 1))) end -= 1;
    pieces.push(slice.slice(start, end));
    start = end;
  }
  return pieces;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** Prompt tokens of a chat body: messages with their parts, tools, the answer's schema and its prediction. An estimate for anything that is not text. */
export async function countPromptTokens(body: Fields): Promise<number> {
  let fixed = TOKENS_OF_REPLY_START;
  const texts: string[] = [];
  for (const message of listOf(body.messages)) {
    fixed += TOKENS_PER_MESSAGE;
    texts.push(stringOf(message.role));
    if (typeof message.name === 'string') {
      fixed += TOKENS_PER_NAME;
      texts.push(message.name);
    }
    if (typeof message.content === 'string') texts.push(message.content);
    for (const part of listOf(message.content)) {
      const { text, tokens } = weighPart(part);
      texts.push(text);
      fixed += tokens;
    }
    texts.push(stringOf(message.refusal), stringOf(message.reasoning_content));
    if (isFields(message.function_call)) texts.push(JSON.stringify(message.function_call));
    for (const call of listOf(message.tool_calls))
      texts.push(JSON.stringify(call.function ?? call.custom ?? call));
  }
  for (const tool of [...listOf(body.tools), ...listOf(body.functions)]) texts.push(JSON.stringify(tool));
  if (isFields(body.prediction)) {
    const { content } = body.prediction;
    texts.push(stringOf(content), ...listOf(content).map((part) => stringOf(part.text)));
  }
  const responseFormat = body.response_format;
  if (isFields(responseFormat) && responseFormat.type === 'json_schema')
    texts.push(JSON.stringify(responseFormat.json_schema ?? ''));
  return fixed + (await countTexts(texts));
}

function weighPart(part: Fields): { text: string; tokens: number } {
  switch (part.type) {
    case 'image_url': {
      const image = part.image_url;
      return {
        text: '',
        tokens: isFields(image) && image.detail === 'low' ? TOKENS_OF_LOW_IMAGE : TOKENS_OF_HIGH_IMAGE,
      };
    }
    case 'input_audio': {
      const audio = part.input_audio;
      return {
        text: '',
        tokens: Math.ceil(
          (isFields(audio) ? stringOf(audio.data).length : 0) / BASE64_CHARACTERS_PER_AUDIO_TOKEN,
        ),
      };
    }
    case 'file': {
      const file = part.file;
      return {
        text: '',
        tokens: Math.ceil(
          (isFields(file) ? stringOf(file.file_data).length : 0) / BASE64_CHARACTERS_PER_FILE_TOKEN,
        ),
      };
    }
    default:
      return { text: stringOf(part.text) + stringOf(part.refusal), tokens: 0 };
  }
}

/** Gathers the text a provider produced, from a completion or chunk by chunk, and counts it. */
export class ProducedText {
  readonly #textByChoice = new Map<number, string>();

  #pieces = 0;

  /** How often something was added to a choice: no more than were tokens produced, when added chunk by chunk. */
  get pieces(): number {
    return this.#pieces;
  }

  /** A whole completion or one chunk of a stream. */
  add(completionOrChunk: Fields): void {
    for (const choice of listOf(completionOrChunk.choices)) {
      const message = choice.delta ?? choice.message;
      if (!isFields(message)) continue;
      const text = textOf(message);
      if (text === '') continue;
      this.#pieces += 1;
      const index = typeof choice.index === 'number' ? choice.index : 0;
      this.#textByChoice.set(index, (this.#textByChoice.get(index) ?? '') + text);
    }
  }

  countTokens(): Promise<number> {
    return countTexts([...this.#textByChoice.values()]);
  }
}

/** Everything of a message, or of a piece of one, that a model wrote. */
function textOf(message: Fields): string {
  let text = stringOf(message.content) + stringOf(message.reasoning_content) + stringOf(message.refusal);
  if (isFields(message.audio)) text += stringOf(message.audio.transcript);
  const calls = listOf(message.tool_calls).map((call) => call.function ?? call.custom);
  for (const called of [message.function_call, ...calls]) {
    if (isFields(called)) text += stringOf(called.name) + stringOf(called.arguments) + stringOf(called.input);
  }
  return text;
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? (value as unknown[]).filter(isFields) : [];
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
