/** Coalescing: who arrives while a batch is under way shares the next; each gets its own answer. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makeCoalescer } from '../../core/coalesce.ts';

/** Batches whose ends the test decides. */
function makeHeld(options: {
  maxBatch: number;
  maxInFlight: number;
  take?: (items: readonly number[]) => number;
  keyOf?: (item: number) => string;
}) {
  const batches: { readonly items: readonly number[]; finish(): void; fail(error: Error): void }[] = [];
  const arrivals: (() => void)[] = [];
  const coalescer = makeCoalescer<number, string>({
    ...options,
    run: (items) =>
      new Promise((resolve, reject) => {
        batches.push({ items, finish: () => resolve(items.map((item) => `answer ${item}`)), fail: reject });
        for (const arrive of arrivals.splice(0)) arrive();
      }),
  });
  return {
    coalescer,
    async batch(index: number) {
      while (batches.length <= index) await new Promise<void>((resolve) => arrivals.push(resolve));
      return batches[index] ?? expect.fail();
    },
    count: () => batches.length,
  };
}

describe('a coalescer', () => {
  it('sends a lone item by itself, and what arrives meanwhile together', async () => {
    const held = makeHeld({ maxBatch: 10, maxInFlight: 1 });
    const first = held.coalescer.add(1);
    expect((await held.batch(0)).items).to.deep.equal([1]);
    const others = [2, 3, 4].map((item) => held.coalescer.add(item));
    (await held.batch(0)).finish();
    expect(await first).to.equal('answer 1');
    expect((await held.batch(1)).items).to.deep.equal([2, 3, 4]);
    (await held.batch(1)).finish();
    expect(await Promise.all(others)).to.deep.equal(['answer 2', 'answer 3', 'answer 4']);
  });

  it('keeps batches within their size and their number', async () => {
    const held = makeHeld({ maxBatch: 2, maxInFlight: 2 });
    const all = [1, 2, 3, 4, 5].map((item) => held.coalescer.add(item));
    expect((await held.batch(0)).items).to.deep.equal([1, 2]);
    expect((await held.batch(1)).items).to.deep.equal([3, 4]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(held.count()).to.equal(2);
    (await held.batch(1)).finish();
    expect((await held.batch(2)).items).to.deep.equal([5]);
    (await held.batch(0)).finish();
    (await held.batch(2)).finish();
    expect(await Promise.all(all)).to.have.lengthOf(5);
  });

  it('lets the batch be bounded by what is in it, but for the first', async () => {
    const held = makeHeld({ maxBatch: 3, maxInFlight: 1, take: () => 0 });
    const all = [9, 1, 2, 3].map((item) => held.coalescer.add(item));
    expect((await held.batch(0)).items).to.deep.equal([9]);
    (await held.batch(0)).finish();
    expect((await held.batch(1)).items).to.deep.equal([1]);
    (await held.batch(1)).finish();
    expect((await held.batch(2)).items).to.deep.equal([2]);
    (await held.batch(2)).finish();
    (await held.batch(3)).finish();
    expect(await Promise.all(all)).to.deep.equal(['answer 9', 'answer 1', 'answer 2', 'answer 3']);
  });

  it('keeps keys apart, and lets others pass one that is under way', async () => {
    const held = makeHeld({ maxBatch: 2, maxInFlight: 2, keyOf: (item) => String(item % 2) });
    const all = [1, 3, 2, 5, 4, 6].map((item) => held.coalescer.add(item));
    expect((await held.batch(0)).items).to.deep.equal([1, 3]);
    expect((await held.batch(1)).items).to.deep.equal([2, 4]);
    (await held.batch(1)).finish();
    expect((await held.batch(2)).items).to.deep.equal([6]);
    (await held.batch(2)).finish();
    await new Promise((resolve) => setImmediate(resolve));
    expect(held.count()).to.equal(3); // 5 waits for 1 and 3
    (await held.batch(0)).finish();
    expect((await held.batch(3)).items).to.deep.equal([5]);
    (await held.batch(3)).finish();
    expect(await Promise.all(all)).to.have.lengthOf(6);
  });

  it('tells every item of a batch that it failed, and goes on', async () => {
    const held = makeHeld({ maxBatch: 10, maxInFlight: 1 });
    const failing = [held.coalescer.add(1), held.coalescer.add(2)];
    const settled = Promise.allSettled(failing);
    (await held.batch(0)).fail(new Error('no'));
    expect((await settled).map((result) => result.status)).to.deep.equal(['rejected', 'rejected']);
    const next = held.coalescer.add(3);
    (await held.batch(1)).finish();
    expect(await next).to.equal('answer 3');
  });

  it('is drained once nothing waits and nothing is under way', async () => {
    const held = makeHeld({ maxBatch: 1, maxInFlight: 1 });
    await held.coalescer.drain();
    let isDrained = false;
    const answers = Promise.all([held.coalescer.add(1), held.coalescer.add(2)]);
    const draining = held.coalescer.drain().then(() => {
      isDrained = true;
    });
    (await held.batch(0)).finish();
    await held.batch(1);
    expect(isDrained).to.equal(false);
    (await held.batch(1)).finish();
    await Promise.all([answers, draining]);
    expect(held.coalescer.size).to.equal(0);
  });
});
