/** A limit on bytes in memory. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { ByteSemaphore } from '../../core/byte-semaphore.ts';

const MIB = 1024 * 1024;

describe('a limit on bytes', () => {
  it('lets wait who finds no room, in order, and never for more than there is', async () => {
    const bytes = new ByteSemaphore(4 * MIB);
    const order: string[] = [];
    const first = await bytes.acquire(3 * MIB);
    const second = bytes.acquire(9 * MIB).then((release) => {
      order.push('second');
      return release;
    });
    const third = bytes.acquire(1).then((release) => {
      order.push('third');
      return release;
    });
    expect(bytes.freeBytes).to.equal(MIB);
    first();
    (await second)();
    (await third)();
    expect(order).to.deep.equal(['second', 'third']);
    expect(bytes.freeBytes).to.equal(4 * MIB);
  });

  it('is given back in no time, however large it is', async () => {
    const bytes = new ByteSemaphore(64 * 1024 * MIB);
    const releases = await Promise.all(Array.from({ length: 50 }, () => bytes.acquire(MIB)));
    const startedAt = performance.now();
    for (const release of releases) release();
    // counted byte by byte each took minutes
    expect(performance.now() - startedAt).to.be.below(1000);
  });
});
