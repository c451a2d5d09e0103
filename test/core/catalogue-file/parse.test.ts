/** Reading a catalogue file: every mistake is told at its place, all of them at once. */
import { expect } from 'chai';
import fc from 'fast-check';
import { describe, it } from 'mocha';
import { stringify } from 'yaml';
import { CatalogueFileError } from '../../../core/catalogue-file/error.ts';
import { parseCatalogueFile } from '../../../core/catalogue-file/parse.ts';
import { isoMicroseconds, parseIsoTime } from '../../../core/iso-time.ts';
import { MISTAKES, readMarks } from './mistakes.ts';

function problemsOf(work: () => unknown): readonly string[] {
  try {
    work();
  } catch (error) {
    if (error instanceof CatalogueFileError) return error.problems;
    throw error;
  }
  return [];
}

describe('a mistake in a catalogue file', () => {
  for (const [title, markedText, ...said] of MISTAKES) {
    it(`is told with its place and what is allowed: ${title}`, () => {
      const { text, places } = readMarks(markedText);
      expect(problemsOf(() => parseCatalogueFile(text, 'c.yaml'))).to.deep.equal(
        said.map((message, index) => `c.yaml:${places[index]}: ${message}`),
      );
    });
  }

  it('is one line even when there are very many', () => {
    const text = `voices:\n${'  - {}\n'.repeat(500)}`;
    const problems = problemsOf(() => parseCatalogueFile(text, 'c.yaml'));
    expect(problems).to.have.lengthOf(101);
    expect(problems.at(-1)).to.equal('and 2400 more problems');
  });

  it('in the form of endless aliases is refused', () => {
    const levels = Array.from({ length: 12 }, (_, level) =>
      level === 0 ? 'a0: &a0 [x, x, x]' : `a${level}: &a${level} [${`*a${level - 1}, `.repeat(9)}]`,
    );
    expect(problemsOf(() => parseCatalogueFile(levels.join('\n'), 'c.yaml'))[0]).to.match(
      /^c\.yaml:1:1: .*alias/i,
    );
  });

  it('never makes the parser throw anything else', () => {
    const word = fc.constantFrom(
      ...[
        'providers',
        'models',
        'voices',
        'id',
        'type',
        'chat',
        'routes',
        'pricing',
        'ap',
        'name',
        'x',
        '__proto__',
      ],
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        word,
        fc.constantFrom(null, true, 0, -1, 1.5, ''),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(word, tie('tree'), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        problemsOf(() => parseCatalogueFile(stringify(value) ?? '', 'c.yaml'));
      }),
      { numRuns: 300 },
    );
  });
});

describe('an ISO time', () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ['2027-01-31', '2027-01-31T00:00:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
    ['2027-01-31T09:00Z', '2027-01-31T09:00:00.000Z'],
    ['2027-01-31 09:00:30+09:00', '2027-01-31T00:00:30.000Z'],
    ['2027-01-31T09:00:00.123456Z', '2027-01-31T09:00:00.123Z'],
    ['2027-02-29', undefined],
    ['2027-13-01', undefined],
    ['2027-01-31T24:00:00Z', undefined],
    ['2027-01-31T09:00:00', undefined],
    ['2027-1-1', undefined],
    ['soon', undefined],
  ];
  for (const [text, expected] of cases) {
    it(`${text} is ${expected ?? 'none'}`, () => {
      expect(parseIsoTime(text)?.toISOString()).to.equal(expected);
    });
  }

  it('keeps microseconds apart', () => {
    const [one, other] = ['2027-01-31T09:00:00.123456Z', '2027-01-31T18:00:00.123457+09:00'].map(
      isoMicroseconds,
    );
    expect((other ?? 0) - (one ?? 0)).to.equal(1);
  });
});
