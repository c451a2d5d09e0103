/**
 * What the sandbox says to a chat body: text, JSON for a schema, or tool calls, the same for the same body. It decides
 * content only; the wire shapes are in `wire.ts`.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ProviderError } from '../provider.ts';
import type { Tokenizer } from '../tokens.ts';
import { parseDirectives } from './directives.ts';
import { hashOf } from './random.ts';
import { sampleOfSchema } from './schema.ts';

/** Of the user's words repeated in the answer. */
const ECHO_CHARACTERS = 2_000;
/** A bias from here up makes a token practically certain; the convention's scale ends at 100. */
const FORCING_BIAS = 50;
/** Of all choices together: each is an object of its own, 60 bytes on the wire and several times that in memory. */
const MAX_LOGPROBS = 200_000;
/** Of all choices together, in UTF-8: with the escapes of JSON an answer stays within about 2 MB. */
const MAX_TEXT_BYTES = 1_000_000;
const WORDS = [
  'alpha',
  'beta',
  'gamma',
  'delta',
  'epsilon',
  'zeta',
  'eta',
  'theta',
  'iota',
  'kappa',
  'lambda',
  'mu',
];

export type Fields = Readonly<Record<string, unknown>>;

export interface ToolCall {
  readonly id: string;
  readonly type: 'function' | 'custom';
  readonly name: string;
  /** JSON of a function's arguments, or a custom tool's input. */
  readonly input: string;
}

export interface Piece {
  readonly text: string;
  readonly tokens: number;
}

export interface Choice {
  readonly content: string | null;
  /** The content in tokens, each one or a few that make whole characters. */
  readonly pieces: readonly Piece[];
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
  readonly tokens: number;
  /** Tokens that a `logit_bias` left as the only possible answers. */
  readonly forcedTokens: readonly string[];
}

/**
 * One choice a turn of the event loop: many long ones must not hold up the rest of the worker. What they are together is added up
 * as they are made, since a short body can ask for gigabytes: an answer above the limits is rejected, not cut.
 */
export async function makeChoices(
  body: Fields,
  outputCapTokens: number,
  tokenizer: Tokenizer,
): Promise<Choice[]> {
  const count = typeof body.n === 'number' ? body.n : 1;
  const logprobsPerToken = logprobsPerTokenOf(body);
  const choices: Choice[] = [];
  let textBytes = 0;
  let logprobs = 0;
  while (choices.length < count) {
    if (choices.length > 0) await nextTurn();
    const choice = makeChoice(body, choices.length, outputCapTokens, tokenizer);
    textBytes += textBytesOf(choice);
    if (textBytes > MAX_TEXT_BYTES) throw tooMuch(count > 1 ? 'n' : 'tools', 'text');
    if (choice.content !== null) logprobs += choice.tokens * logprobsPerToken;
    if (logprobs > MAX_LOGPROBS)
      throw tooMuch(logprobsPerToken > 1 ? 'top_logprobs' : 'logprobs', 'log-probabilities');
    choices.push(choice);
  }
  return choices;
}

/** The token's own, and those it is compared with. */
function logprobsPerTokenOf(body: Fields): number {
  if (body.logprobs !== true) return 0;
  return 1 + (typeof body.top_logprobs === 'number' ? body.top_logprobs : 0);
}

function textBytesOf({ content, toolCalls }: Choice): number {
  return toolCalls.reduce((sum, call) => sum + Buffer.byteLength(call.input), Buffer.byteLength(content ?? ''));
}

function tooMuch(param: string, what: string): ProviderError {
  return new ProviderError('rejected', 'An answer beyond the sandbox.', {
    publicMessage: `[sandbox] All choices together would have more ${what} than the sandbox makes: lower ${param}, or ask for a shorter answer.`,
    param,
  });
}

function makeChoice(body: Fields, index: number, outputCapTokens: number, tokenizer: Tokenizer): Choice {
  const forcedTokens = forcedTokensOf(body, tokenizer);
  const toolCalls = forcedTokens.length > 0 ? [] : toolCallsOf(body, index);
  if (toolCalls.length > 0) return toolChoice(toolCalls, outputCapTokens, tokenizer);
  const text =
    forcedTokens.length > 0 ? pick(forcedTokens, body, index) : beforeStop(textOf(body, index), body.stop);
  const allPieces = piecesOf(text, tokenizer);
  const pieces: Piece[] = [];
  let tokens = 0;
  for (const piece of allPieces) {
    if (tokens + piece.tokens > outputCapTokens) break;
    tokens += piece.tokens;
    pieces.push(piece);
  }
  const isWhole = pieces.length === allPieces.length;
  return {
    content: isWhole ? text : pieces.map((piece) => piece.text).join(''),
    pieces,
    toolCalls: [],
    finishReason: isWhole ? 'stop' : 'length',
    tokens,
    forcedTokens,
  };
}

/** Tool calls in the cap; arguments that would go over it are cut off, as models do. */
function toolChoice(calls: readonly ToolCall[], outputCapTokens: number, tokenizer: Tokenizer): Choice {
  const toolCalls: ToolCall[] = [];
  let tokens = 0;
  let isWhole = true;
  for (const call of calls) {
    tokens += tokenizer.countTokens(call.name);
    let input = '';
    for (const piece of piecesOf(call.input, tokenizer)) {
      if (tokens + piece.tokens > outputCapTokens) {
        isWhole = false;
        break;
      }
      tokens += piece.tokens;
      input += piece.text;
    }
    toolCalls.push({ ...call, input });
    if (!isWhole) break;
  }
  tokens = Math.min(tokens, outputCapTokens);
  return {
    content: null,
    pieces: [],
    toolCalls,
    finishReason: isWhole ? 'tool_calls' : 'length',
    tokens,
    forcedTokens: [],
  };
}

function textOf(body: Fields, index: number): string {
  const { text: said, words } = parseDirectives(lastUserText(body));
  const format = body.response_format;
  if (isFields(format) && format.type === 'json_schema') {
    const definition = format.json_schema;
    return JSON.stringify(sampleOfSchema(isFields(definition) ? (definition.schema ?? true) : true));
  }
  const images = imageCount(body);
  const variant = index === 0 ? '' : ` (choice ${index + 1})`;
  if (isFields(format) && format.type === 'json_object') {
    return JSON.stringify({
      sandbox: true,
      message: `[sandbox]${variant} You said: ${echo(said)}`,
      ...(images > 0 ? { images } : {}),
    });
  }
  if (words !== undefined)
    return `[sandbox]${variant} ${Array.from({ length: words }, (_, word) => WORDS[word % WORDS.length]).join(' ')}`;
  const last = lastMessage(body);
  const toolResult = last?.role === 'tool' ? ` The tool answered: ${echo(contentText(last))}` : '';
  const seen = images === 0 ? '' : ` I was sent ${images} ${images === 1 ? 'image' : 'images'}.`;
  return `[sandbox]${variant} You said: ${echo(said)}${seen}${toolResult}`;
}

/** Never within a character: half a surrogate pair would not survive the wire. */
function echo(text: string): string {
  return (text.length <= ECHO_CHARACTERS ? text : `${text.slice(0, ECHO_CHARACTERS)}…`).toWellFormed();
}

function beforeStop(text: string, stop: unknown): string {
  let end = text.length;
  for (const sequence of Array.isArray(stop) ? (stop as unknown[]) : [stop]) {
    if (typeof sequence !== 'string' || sequence === '') continue;
    const at = text.indexOf(sequence);
    if (at !== -1 && at < end) end = at;
  }
  return text.slice(0, end).toWellFormed();
}

/** The text in tokens; tokens that end within a character go together with the next, since a chunk is whole text. */
function piecesOf(text: string, tokenizer: Tokenizer): Piece[] {
  let consumed = 0;
  const tokens = tokenizer.encode(text);
  const counted = function* () {
    for (const token of tokens) {
      consumed += 1;
      yield token;
    }
  };
  const pieces: Piece[] = [];
  let before = 0;
  for (const piece of tokenizer.decodeGenerator(counted())) {
    pieces.push({ text: piece, tokens: consumed - before });
    before = consumed;
  }
  return pieces;
}

function forcedTokensOf(body: Fields, tokenizer: Tokenizer): string[] {
  const bias = body.logit_bias;
  if (!isFields(bias)) return [];
  const forced = Object.keys(bias).filter(
    (token) => typeof bias[token] === 'number' && bias[token] >= FORCING_BIAS,
  );
  return forced.flatMap((token) => tokenizer.textOfToken(Number(token)) ?? []);
}

function pick(texts: readonly string[], body: Fields, index: number): string {
  const salt = `${lastUserText(body)} ${String(body.seed ?? '')} ${index}`;
  return texts[hashOf(salt) % texts.length] ?? '';
}

/** Which tools to call: those `tool_choice` asks for, or those the user named and has had no answer of yet. */
function toolCallsOf(body: Fields, index: number): ToolCall[] {
  const tools = listOf(body.tools);
  const choice = body.tool_choice ?? 'auto';
  if (tools.length === 0 || choice === 'none') return [];
  const allowed = allowedTools(tools, choice);
  const named = isFields(choice) ? nameOf(choice) : undefined;
  const isRequired =
    choice === 'required' ||
    (isFields(choice) && isFields(choice.allowed_tools) && choice.allowed_tools.mode === 'required');
  const said = lastUserText(body);
  const isAnswered = lastMessage(body)?.role === 'tool';
  const mentioned = isAnswered ? [] : allowed.filter((tool) => said.includes(nameOf(tool) ?? '\0'));
  let called = mentioned;
  if (named !== undefined) called = allowed.filter((tool) => nameOf(tool) === named);
  else if (isRequired && mentioned.length === 0) called = allowed.slice(0, 1);
  if (body.parallel_tool_calls === false) called = called.slice(0, 1);
  return called.map((tool, position) => toolCallOf(tool, said, `${index}.${position}`));
}

function allowedTools(tools: readonly Fields[], choice: unknown): readonly Fields[] {
  if (!isFields(choice) || !isFields(choice.allowed_tools)) return tools;
  const names = new Set(listOf(choice.allowed_tools.tools).map(nameOf));
  return tools.filter((tool) => names.has(nameOf(tool)));
}

function toolCallOf(tool: Fields, said: string, salt: string): ToolCall {
  const name = nameOf(tool) ?? '';
  const id = `call_sandbox_${hashOf(`${said} ${name} ${salt}`).toString(36)}${hashOf(`${salt} ${said}`).toString(36)}`;
  if (tool.type === 'custom')
    return { id, type: 'custom', name, input: `[sandbox] ${echo(parseDirectives(said).text)}` };
  const definition = tool.function;
  const parameters = isFields(definition) ? definition.parameters : undefined;
  const value = isFields(parameters) && Object.keys(parameters).length > 0 ? sampleOfSchema(parameters) : {};
  return { id, type: 'function', name, input: JSON.stringify(value) };
}

function nameOf(toolOrChoice: Fields): string | undefined {
  const definition = toolOrChoice.function ?? toolOrChoice.custom;
  return isFields(definition) && typeof definition.name === 'string' ? definition.name : undefined;
}

export function lastUserText(body: Fields): string {
  const message = listOf(body.messages).findLast((candidate) => candidate.role === 'user');
  return message === undefined ? '' : contentText(message);
}

function lastMessage(body: Fields): Fields | undefined {
  return listOf(body.messages).at(-1);
}

function contentText(message: Fields): string {
  if (typeof message.content === 'string') return message.content;
  return listOf(message.content)
    .map((part) => (typeof part.text === 'string' ? part.text : ''))
    .filter(Boolean)
    .join('\n');
}

function imageCount(body: Fields): number {
  return listOf(body.messages).reduce(
    (sum, message) => sum + listOf(message.content).filter((part) => part.type === 'image_url').length,
    0,
  );
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? (value as unknown[]).filter(isFields) : [];
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
