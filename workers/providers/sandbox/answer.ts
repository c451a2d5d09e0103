/**
 * What the sandbox says to a chat body: text, JSON for a schema, or tool calls, the same for the same body. It decides
 * content only; the wire shapes are in `wire.ts`.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Tokenizer } from '../tokens.ts';
import { AnswerSize } from './answer-size.ts';
import { contentText, type Fields, imageCount, isFields, lastMessage, lastUserText } from './body.ts';
import { type Directives, parseDirectives } from './directives.ts';
import { hashOf } from './random.ts';
import { type SampleBudget, sampleOfSchema } from './schema.ts';
import { calledTools, nameOf } from './tools.ts';

/** Of the user's words repeated in the answer. */
const ECHO_CHARACTERS = 2_000;
/** A bias from here up makes a token practically certain; the convention's scale ends at 100. */
const FORCING_BIAS = 50;
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

/** A text that several choices may say. */
interface Spoken {
  readonly text: string;
  readonly pieces: readonly Piece[];
}

/** What the choices of one request share, so that nothing is read, sampled or taken apart again for each. */
interface Request {
  readonly body: Fields;
  /** Of the last user message, whose hash is as good in an id as itself. */
  readonly directives: Directives;
  readonly saidHash: number;
  readonly forcedTokens: readonly string[];
  readonly calledTools: readonly Fields[];
  readonly outputCapTokens: number;
  readonly tokenizer: Tokenizer;
  /** Of all schemas together. */
  readonly budget: SampleBudget;
  /** By the tool, or by the answer's format. */
  readonly samples: Map<Fields, Spoken>;
}

/** One choice a turn of the event loop: many long ones must not hold up the rest of the worker. */
export async function makeChoices(
  body: Fields,
  outputCapTokens: number,
  tokenizer: Tokenizer,
): Promise<Choice[]> {
  const request = requestOf(body, outputCapTokens, tokenizer);
  const count = typeof body.n === 'number' ? body.n : 1;
  const size = new AnswerSize(body);
  const choices: Choice[] = [];
  while (choices.length < count) {
    if (choices.length > 0) await nextTurn();
    const choice = makeChoice(request, choices.length);
    size.add(choice);
    choices.push(choice);
  }
  return choices;
}

function requestOf(body: Fields, outputCapTokens: number, tokenizer: Tokenizer): Request {
  const said = lastUserText(body);
  const forcedTokens = forcedTokensOf(body, tokenizer);
  return {
    body,
    directives: parseDirectives(said),
    saidHash: hashOf(said),
    forcedTokens,
    calledTools: forcedTokens.length > 0 ? [] : calledTools(body, said),
    outputCapTokens,
    tokenizer,
    budget: { nodes: 0, characters: 0, steps: 0 },
    samples: new Map(),
  };
}

function makeChoice(request: Request, index: number): Choice {
  const { forcedTokens, calledTools, outputCapTokens } = request;
  if (calledTools.length > 0) return toolChoice(request, index);
  const { text, pieces: allPieces } = spokenBy(request, index);
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

/** Tool calls in the cap; arguments that would go over it are cut off, as models do, and no more tools are looked at. */
function toolChoice(request: Request, index: number): Choice {
  const { calledTools, outputCapTokens, tokenizer } = request;
  const toolCalls: ToolCall[] = [];
  let tokens = 0;
  let isWhole = true;
  for (const tool of calledTools) {
    const name = nameOf(tool) ?? '';
    tokens += tokenizer.countTokens(name);
    const { text, pieces } = sampled(request, tool, () => inputOf(request, tool));
    let characters = 0;
    for (const piece of pieces) {
      if (tokens + piece.tokens > outputCapTokens) {
        isWhole = false;
        break;
      }
      tokens += piece.tokens;
      characters += piece.text.length;
    }
    const id = callId(request, name, `${index}.${toolCalls.length}`);
    const type = tool.type === 'custom' ? 'custom' : 'function';
    toolCalls.push({ id, type, name, input: text.slice(0, characters) });
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

/** What a choice without tool calls says. */
function spokenBy(request: Request, index: number): Spoken {
  const { body, forcedTokens, tokenizer } = request;
  const format = body.response_format;
  if (forcedTokens.length > 0) return spokenOf(pick(forcedTokens, request, index), tokenizer);
  if (isFields(format) && format.type === 'json_schema') {
    const definition = format.json_schema;
    const schema = isFields(definition) ? (definition.schema ?? true) : true;
    return sampled(request, format, () =>
      beforeStop(JSON.stringify(sampleOfSchema(schema, request.budget)), body.stop),
    );
  }
  return spokenOf(beforeStop(textOf(request, index), body.stop), tokenizer);
}

function spokenOf(text: string, tokenizer: Tokenizer): Spoken {
  return { text, pieces: piecesOf(text, tokenizer) };
}

function sampled({ samples, tokenizer }: Request, from: Fields, sample: () => string): Spoken {
  let spoken = samples.get(from);
  if (spoken === undefined) {
    spoken = spokenOf(sample(), tokenizer);
    samples.set(from, spoken);
  }
  return spoken;
}

function textOf({ body, directives }: Request, index: number): string {
  const { text: said, words } = directives;
  const format = body.response_format;
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

function pick(texts: readonly string[], { body, saidHash }: Request, index: number): string {
  const salt = `${saidHash} ${String(body.seed ?? '')} ${index}`;
  return texts[hashOf(salt) % texts.length] ?? '';
}

function callId({ saidHash }: Request, name: string, salt: string): string {
  return `call_sandbox_${hashOf(`${saidHash} ${name} ${salt}`).toString(36)}${hashOf(`${salt} ${saidHash}`).toString(36)}`;
}

function inputOf({ directives, budget }: Request, tool: Fields): string {
  if (tool.type === 'custom') return `[sandbox] ${echo(directives.text)}`;
  const definition = tool.function;
  const parameters = isFields(definition) ? definition.parameters : undefined;
  const hasParameters = isFields(parameters) && Object.keys(parameters).length > 0;
  return JSON.stringify(hasParameters ? sampleOfSchema(parameters, budget) : {});
}
