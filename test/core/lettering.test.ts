/** Letters drawn as lines: every character shows, and none breaks the SVG it stands in. */
import { expect } from 'chai';
import fc from 'fast-check';
import { describe, it } from 'mocha';
import { letter, lettersIn } from '../../core/lettering.ts';

describe('letters', () => {
  it('are lines and numbers only, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        const { path, width } = letter(text, 3, 4, 12);
        expect(path).to.match(/^(M-?[\d.]+ -?[\d.]+L[-\d. ]+)*$/);
        expect(width).to.be.at.least(0);
      }),
      { numRuns: 50 },
    );
  });

  it('show each character, and different ones differently', () => {
    const characters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?\'"-_+=/<>[]()&#%*富士山桜'];
    const paths = characters.map((character) => letter(character, 0, 0, 6).path);
    expect(paths.every((path) => path !== '')).to.equal(true);
    expect(new Set(paths).size).to.equal(characters.length);
  });

  it('are capitals without accents', () => {
    expect(letter('Café', 0, 0, 6)).to.deep.equal(letter('CAFE', 0, 0, 6));
  });

  it('stay in the box that they say', () => {
    const { path, width } = letter('WORDS & more', 0, 0, 12);
    const xs = [...path.matchAll(/[ML ](-?[\d.]+) -?[\d.]+/g)].map((point) => Number(point[1]));
    expect(Math.max(...xs)).to.be.at.most(width);
    expect(letter('x'.repeat(lettersIn(200, 10)), 0, 0, 10).width).to.be.at.most(200);
  });
});
