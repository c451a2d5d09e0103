/** Counts in Redis that share a command: each caller gets its own. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { after, before, beforeEach, describe, it } from 'mocha';
import { type Counters, makeCounters } from '../../ingress/counters.ts';
import { startRedis, type TestRedis } from '../helpers/redis.ts';
import { eventually } from '../helpers/service.ts';

describe('counters in Redis', () => {
  let server: TestRedis;
  let redis: Redis;
  let counters: Counters;

  before(async function () {
    const started = await startRedis();
    if (started === undefined) return this.skip();
    server = started;
    redis = new Redis(server.url);
  });
  after(async () => {
    counters?.close();
    redis?.disconnect();
    await server?.stop();
  });
  beforeEach(async () => {
    counters?.close();
    counters = makeCounters(server.url, () => {});
    await redis.flushall();
    await eventually(async () => {
      expect(await counters.agreeOn('connected', 'yes', 1)).to.equal('yes');
    });
  });

  it('tell each of those that count at one moment its own count, also of one key', async () => {
    const [few, many] = [3, 100].map((limit) =>
      counters.make({ name: `c${limit}`, limit, windowSeconds: 60 }),
    );
    const keys = ['a', 'b', 'a', 'c', 'a', 'a', 'b'];
    const before = await scriptRuns();
    const states = await Promise.all([
      ...keys.map((key) => few?.count(key)),
      ...keys.map((key) => many?.count(key)),
    ]);
    expect(states.map((state) => state?.remaining)).to.deep.equal([
      ...[2, 2, 1, 2, 0, 0, 1],
      ...[99, 99, 98, 99, 97, 96, 98],
    ]);
    expect(states.map((state) => state?.isAllowed)).to.deep.equal([
      ...[true, true, true, true, true, false, true],
      ...keys.map(() => true),
    ]);
    expect((await scriptRuns()) - before).to.equal(1);
  });

  it('begin a window with its first count, which later ones do not lengthen', async () => {
    const counter = counters.make({ name: 'w', limit: 5, windowSeconds: 60 });
    expect((await counter.count('a')).resetSeconds).to.equal(60);
    await redis.pexpire('w:a', 1500);
    expect(await counter.count('a')).to.deep.include({ remaining: 3, resetSeconds: 2 });
    await redis.pexpire('w:a', 0);
    expect(await counter.count('a')).to.deep.include({ remaining: 4, resetSeconds: 60 });
  });

  it('give a window to a key that has none', async () => {
    await redis.set('w:a', 2);
    const counter = counters.make({ name: 'w', limit: 5, windowSeconds: 60 });
    expect(await counter.count('a')).to.deep.include({ remaining: 2, resetSeconds: 60 });
    expect(await redis.ttl('w:a')).to.be.within(59, 60);
  });

  async function scriptRuns(): Promise<number> {
    const stats = await redis.info('commandstats');
    const calls = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].map(([, count]) => Number(count));
    return calls.reduce((sum, count) => sum + count, 0);
  }
});
