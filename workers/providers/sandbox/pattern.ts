/**
 * A text that matches a regular expression, for `pattern` in a caller's JSON schema: literals, classes, groups,
 * alternatives and quantifiers; look-arounds and back-references are left out. The expression is read, never run, so it
 * cannot be made to take long. Each part is repeated as little as allowed; `least` is met by repeating the last part that may repeat.
 */
const MAX_GROUP_CHARACTERS = 1_000;
const MAX_CHARACTERS = 20_000;
const MAX_DEPTH = 32;
const WORD = 'a';

/** One part of a sequence: its sample, and how often it stands and may stand. */
interface Part {
  readonly sample: string;
  readonly times: number;
  readonly most: number;
}

export function sampleOfPattern(pattern: string, least: number, most: number): string {
  const parser = new PatternParser(pattern);
  const parts = parser.alternatives(0);
  const isAnchoredBothEnds = parser.hasStart && parser.hasEnd;
  let sample = render(parts);
  const stretchable = parts.findLastIndex((part) => part.most > part.times && part.sample !== '');
  const stretched = parts[stretchable];
  if (sample.length < least && stretched !== undefined) {
    const missing = Math.ceil((least - sample.length) / stretched.sample.length);
    const times = Math.min(stretched.times + missing, stretched.most);
    sample = render(parts.with(stretchable, { ...stretched, times }));
  }
  if (sample.length < least && !isAnchoredBothEnds)
    sample = parser.hasEnd ? sample.padStart(least, WORD) : sample.padEnd(least, WORD);
  return sample.slice(0, Math.max(most, 0));
}

function render(parts: readonly Part[]): string {
  let text = '';
  for (const part of parts) {
    if (part.sample === '') continue;
    text += part.sample.repeat(
      Math.min(part.times, Math.ceil((MAX_CHARACTERS - text.length) / part.sample.length)),
    );
  }
  return text;
}

class PatternParser {
  hasStart = false;
  hasEnd = false;
  readonly #characters: readonly string[];
  #position = 0;

  constructor(pattern: string) {
    this.#characters = [...pattern];
  }

  /** Reads up to `)` or the end and gives the first alternative. */
  alternatives(depth: number): Part[] {
    let first: Part[] | undefined;
    for (;;) {
      const parts = this.#sequence(depth);
      first ??= parts;
      if (this.#peek() !== '|') return first;
      this.#position += 1;
    }
  }

  #sequence(depth: number): Part[] {
    const parts: Part[] = [];
    for (let next = this.#peek(); next !== undefined && next !== '|' && next !== ')'; next = this.#peek()) {
      const sample = this.#atom(depth);
      parts.push({ sample, ...this.#quantifier() });
    }
    return parts;
  }

  #atom(depth: number): string {
    const character = this.#take();
    switch (character) {
      case '^':
        this.hasStart = true;
        return '';
      case '$':
        this.hasEnd = true;
        return '';
      case '.':
        return WORD;
      case '[':
        return this.#characterClass();
      case '\\':
        return this.#escape();
      case '(':
        return this.#group(depth);
      default:
        return character;
    }
  }

  #group(depth: number): string {
    let isAssertion = false;
    if (this.#peek() === '?') {
      this.#position += 1;
      const kind = this.#take();
      if (kind === '<' && this.#peek() !== '=' && this.#peek() !== '!')
        while (this.#peek() !== undefined && this.#take() !== '>');
      else isAssertion = kind !== ':';
      if (kind === '<' && isAssertion) this.#position += 1;
    }
    const parts = depth < MAX_DEPTH ? this.alternatives(depth + 1) : [];
    this.#position += 1;
    return isAssertion ? '' : render(parts).slice(0, MAX_GROUP_CHARACTERS);
  }

  #escape(): string {
    const character = this.#take();
    switch (character) {
      case 'd':
        return '0';
      case 'D':
      case 'w':
      case 'S':
        return WORD;
      case 's':
      case 'W':
        return ' ';
      case 'b':
      case 'B':
        return '';
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'x':
        return this.#codePoint(2);
      case 'u':
        return this.#peek() === '{'
          ? this.#braced((text) =>
              String.fromCodePoint(Math.min(Number.parseInt(text, 16) || 0x61, 0x10ffff)),
            )
          : this.#codePoint(4);
      case 'p':
        return this.#braced((text) =>
          /^(N|Nd|Number)/.test(text) ? '0' : /^(Lu|Uppercase)/.test(text) ? 'A' : WORD,
        );
      default:
        return character;
    }
  }

  #codePoint(digits: number): string {
    let text = '';
    for (let index = 0; index < digits; index += 1) text += this.#take();
    return String.fromCodePoint(Number.parseInt(text, 16) || 0x61);
  }

  #braced(meaning: (text: string) => string): string {
    let text = '';
    this.#position += 1;
    for (let next = this.#take(); next !== '}' && next !== ''; next = this.#take()) text += next;
    return meaning(text);
  }

  /** The first character a class allows; of a negated class, the first common one that it does not name. */
  #characterClass(): string {
    const isNegated = this.#peek() === '^';
    if (isNegated) this.#position += 1;
    const ranges: [string, string][] = [];
    for (let next = this.#peek(); next !== undefined && next !== ']'; next = this.#peek()) {
      this.#position += 1;
      const start = next === '\\' ? this.#escape() : next;
      let end = start;
      if (this.#peek() === '-' && this.#characters[this.#position + 1] !== ']') {
        this.#position += 1;
        const last = this.#take();
        end = last === '\\' ? this.#escape() : last;
      }
      if (start !== '') ranges.push([start, end]);
    }
    this.#position += 1;
    if (!isNegated) return ranges[0]?.[0] ?? WORD;
    const isNamed = (candidate: string) =>
      ranges.some(([start, end]) => candidate >= start && candidate <= end);
    return ['a', 'A', '0', '-', '_', ' ', '~'].find((candidate) => !isNamed(candidate)) ?? 'é';
  }

  #quantifier(): { times: number; most: number } {
    const next = this.#peek();
    let range = { times: 1, most: 1 };
    if (next === '*' || next === '?') range = { times: 0, most: next === '*' ? Number.POSITIVE_INFINITY : 1 };
    else if (next === '+') range = { times: 1, most: Number.POSITIVE_INFINITY };
    else if (next === '{') {
      const text = this.#characters.slice(this.#position, this.#position + 24).join('');
      const match = /^\{(\d+)(,(\d*))?\}/.exec(text);
      if (match === null) return range;
      const times = Number(match[1]);
      range = {
        times,
        most: match[2] === undefined ? times : match[3] === '' ? Number.POSITIVE_INFINITY : Number(match[3]),
      };
      this.#position += match[0].length - 1;
    } else return range;
    this.#position += 1;
    // Lazy forms allow the same texts.
    if (this.#peek() === '?') this.#position += 1;
    return range;
  }

  #peek(): string | undefined {
    return this.#characters[this.#position];
  }

  #take(): string {
    const character = this.#characters[this.#position] ?? '';
    this.#position += 1;
    return character;
  }
}
