/** Log-probabilities for the sandbox's tokens: made up, the same each time, and summing to less than one as real ones do. */
import type { Choice, Piece } from './answer.ts';
import { fractionOf } from './random.ts';

/** Other words that "might have come"; one more than the convention's limit of 20, so that the chosen one can be left out. */
const OTHERS = [
  ' the',
  ' a',
  ' and',
  ' of',
  ' to',
  ' in',
  ' is',
  ' it',
  ' you',
  ' that',
  ' was',
  ' for',
  ' on',
  ' are',
  ' with',
  ' as',
  ' I',
  ' be',
  ' at',
  ' or',
  ' by',
];
const LEAST_CHOSEN = 0.5;
const CHOSEN_SPAN = 0.45;

interface Logprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
}

export function logprobsOf(
  choice: Choice,
  pieces: readonly Piece[],
  topCount: number,
): Record<string, unknown> {
  const content = pieces.map((piece) => {
    const likely = likelihoods(piece.text, choice.forcedTokens, topCount);
    return { ...likely[0], top_logprobs: likely.slice(0, topCount) };
  });
  return { content, refusal: null };
}

/** Most likely first. The answer has at least half; the others share what is left, each half of the one before. */
function likelihoods(token: string, forcedTokens: readonly string[], topCount: number): Logprob[] {
  const others = (forcedTokens.length > 0 ? forcedTokens : OTHERS).filter((other) => other !== token);
  const chosen = others.length === 0 ? 1 : LEAST_CHOSEN + CHOSEN_SPAN * fractionOf(token);
  let left = 1 - chosen;
  const entries = [entry(token, chosen)];
  for (const other of others.slice(0, Math.max(0, topCount - 1))) {
    left /= 2;
    entries.push(entry(other, left));
  }
  return entries;
}

function entry(token: string, probability: number): Logprob {
  return { token, logprob: Math.log(probability), bytes: [...Buffer.from(token, 'utf8')] };
}
