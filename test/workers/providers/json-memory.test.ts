/** The estimate of what JSON takes in memory. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { memoryOfJson } from '../../../workers/providers/json-memory.ts';

const memoryOf = (text: string): number => memoryOfJson(Buffer.from(text));

describe('the memory of JSON', () => {
  const cases: [text: string, nodes: number][] = [
    ['{"a":1}', 2],
    ['[[],{},1]', 5],
    ['"commas, and: [{ in a text"', 0],
    ['["\\"",",\\\\",2]', 3],
    ['[",', 1],
    ['["\\', 1],
    ['', 0],
  ];
  for (const [text, nodes] of cases) {
    it(`counts ${nodes} values and names in ${JSON.stringify(text)}`, () => {
      expect(memoryOf(text)).to.equal(Buffer.byteLength(text) * 4 + nodes * 40);
    });
  }

  it('is some times that of the text, and many times where the text is all structure', () => {
    const token = { token: ' word', logprob: -0.0123456, bytes: [32, 119, 111, 114, 100] };
    const logprobs = JSON.stringify(Array.from({ length: 1000 }, () => token));
    const [prose, empty] = [JSON.stringify('word, '.repeat(1000)), `[{}${',{}'.repeat(1000)}]`];
    expect(memoryOf(prose) / prose.length).to.be.closeTo(4, 0.1);
    expect(memoryOf(logprobs) / logprobs.length).to.be.within(5, 12);
    expect(memoryOf(empty) / empty.length).to.be.above(25);
  });
});
