import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { TransientMap } from '../../core/transient-map.ts';

describe('TransientMap', () => {
  it('keeps what was set until it is deleted, and counts it once', () => {
    const map = new TransientMap<number>();
    map.set('a', 1);
    map.set('b', 2);
    map.set('a', 3);
    expect(map.size).to.equal(2);
    expect(map.get('a')).to.equal(3);
    expect(map.delete('a')).to.equal(true);
    expect(map.delete('a')).to.equal(false);
    expect(map.get('a')).to.equal(undefined);
    expect(map.size).to.equal(1);
  });

  it('takes any word for a key, and knows none that was not set', () => {
    const map = new TransientMap<number>();
    for (const word of ['constructor', 'toString', '__proto__', '']) {
      expect(map.get(word)).to.equal(undefined);
      expect(map.delete(word)).to.equal(false);
      map.set(word, 1);
    }
    expect(map.size).to.equal(4);
    expect(map.values()).to.deep.equal([1, 1, 1, 1]);
  });

  it('holds more than it has chains for, whatever comes and goes in between', () => {
    const map = new TransientMap<number>();
    const expected = new Map<string, number>();
    for (let index = 0; index < 20_000; index += 1) {
      // more keys than chains: some fall into one
      const key = `request ${(index * 2_654_435_761) % 2 ** 32}`;
      map.set(key, index);
      expected.set(key, index);
      const [older] = expected.keys();
      if (index % 3 === 0 && older !== undefined) {
        expect(map.delete(older)).to.equal(true);
        expected.delete(older);
      }
    }
    expect(map.size).to.equal(expected.size);
    for (const [key, value] of expected) expect(map.get(key)).to.equal(value);
    const ascending = (one: number, other: number): number => one - other;
    expect(map.values().sort(ascending)).to.deep.equal([...expected.values()].sort(ascending));
  });

  it('gives its values as of now', () => {
    const map = new TransientMap<number>();
    map.set('a', 1);
    const values = map.values();
    map.set('b', 2);
    map.delete('a');
    expect(values).to.deep.equal([1]);
  });

  // with a Map in its place: 32 MB (docs/decisions/0023-what-outlives-its-request.md)
  it('leaves what was deleted to the next collection of the new space', () => {
    const script = fileURLToPath(new URL('./transient-map-churn.ts', import.meta.url));
    const grownBytes = Number(execFileSync(process.execPath, ['--expose-gc', script], { encoding: 'utf8' }));
    expect(grownBytes).to.be.within(-5_000_000, 5_000_000);
  });
});
