/**
 * What the choices of one answer are together, added up as they are made: 150 bytes of a body can ask for gigabytes. An answer above
 * the limits is rejected, not cut.
 */
import { ProviderError } from '../provider.ts';
import type { Fields } from './body.ts';

/** Of all choices together: each is an object of its own, 70 bytes on the wire and several times that in memory. */
const MAX_LOGPROBS = 200_000;
/** Of all choices together, in UTF-8: with the escapes of JSON an answer stays within about 2 MB. */
const MAX_TEXT_BYTES = 1_000_000;

interface Choice {
  readonly content: string | null;
  readonly toolCalls: readonly { readonly name: string; readonly input: string }[];
  readonly tokens: number;
}

export class AnswerSize {
  readonly #logprobsPerToken: number;
  readonly #hasManyChoices: boolean;
  #logprobs = 0;
  #textBytes = 0;

  constructor(body: Fields) {
    this.#logprobsPerToken = logprobsPerTokenOf(body);
    this.#hasManyChoices = typeof body.n === 'number' && body.n > 1;
  }

  /** Throws `rejected` where this choice is one too many. */
  add(choice: Choice): void {
    this.#textBytes += textBytesOf(choice);
    if (this.#textBytes > MAX_TEXT_BYTES) throw tooMuch(this.#hasManyChoices ? 'n' : 'tools', 'text');
    if (choice.content !== null) this.#logprobs += choice.tokens * this.#logprobsPerToken;
    if (this.#logprobs > MAX_LOGPROBS)
      throw tooMuch(this.#logprobsPerToken > 1 ? 'top_logprobs' : 'logprobs', 'log-probabilities');
  }
}

/** The token's own, and those it is compared with. */
function logprobsPerTokenOf(body: Fields): number {
  if (body.logprobs !== true) return 0;
  return 1 + (typeof body.top_logprobs === 'number' ? body.top_logprobs : 0);
}

function textBytesOf({ content, toolCalls }: Choice): number {
  return toolCalls.reduce(
    (sum, { name, input }) => sum + Buffer.byteLength(name) + Buffer.byteLength(input),
    Buffer.byteLength(content ?? ''),
  );
}

function tooMuch(param: string, what: string): ProviderError {
  return new ProviderError('rejected', 'An answer beyond the sandbox.', {
    publicMessage: `[sandbox] All choices together would have more ${what} than the sandbox makes: lower ${param}, or ask for a shorter answer.`,
    param,
  });
}
