/** The daily allowance of a client address for tools without a key. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { after, before, describe, it } from 'mocha';
import { ServiceError } from '../../core/errors.ts';
import { type Counters, makeCounters } from '../../ingress/counters.ts';
import { type AddressCap, makeAddressCap } from '../../ingress/middleware/ip-daily-cap.ts';
import { startRedis, type TestRedis } from '../helpers/redis.ts';
import { eventually, withTestService } from '../helpers/service.ts';

const NOON = new Date('2026-05-04T12:00:00Z');
const ADDRESS = '203.0.113.7';

/** Seconds until it may come again; undefined: it is let through. */
async function wait(cap: AddressCap, address = ADDRESS, area: 'images' | 'tts' = 'images') {
  try {
    await cap.count(address, area);
    return undefined;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    expect([error.code, error.details]).to.deep.equal(['ip_daily_cap', {}]);
    return error.retryAfterSeconds;
  }
}

describe('the daily cap of a client address', () => {
  const inMemory = (dailyCap: number, now = () => NOON) =>
    makeAddressCap({ counters: makeCounters(undefined, () => {}), dailyCap, now });

  it('counts each address and area, and says how long the day still lasts', async () => {
    const cap = inMemory(2);
    const seen: (number | undefined)[] = [];
    for (let count = 0; count < 4; count += 1) seen.push(await wait(cap));
    expect(seen).to.deep.equal([undefined, undefined, 43_200, 43_200]);
    expect(await wait(cap, '203.0.113.8')).to.equal(undefined);
    expect(await wait(cap, ADDRESS, 'tts')).to.equal(undefined);
  });

  it('begins anew at midnight UTC', async () => {
    let now = new Date('2026-05-04T23:59:59.500Z');
    const cap = inMemory(1, () => now);
    expect(await wait(cap)).to.equal(undefined);
    expect(await wait(cap)).to.equal(1);
    now = new Date('2026-05-05T00:00:00Z');
    expect(await wait(cap)).to.equal(undefined);
    expect(await wait(cap)).to.equal(86_400);
  });

  it('counts what one place is given as one address', async () => {
    const same: readonly (readonly string[])[] = [
      ['2001:db8:0:7::1', '2001:db8:0:7:ffff::', '2001:0db8:0000:0007:1:2:3:4', '2001:DB8:0:7::1%eth0'],
      [ADDRESS, `::ffff:${ADDRESS}`, `::FFFF:${ADDRESS}`],
      ['::1', '0:0:0:0:0:0:0:2'],
      ['64:ff9b::203.0.113.7', '64:ff9b::1'],
      ['2001:db8::', '2001:db8:0:0:1::'],
      ['', ''],
      ['unknown', 'unknown'],
    ];
    for (const [first = '', ...others] of same) {
      const cap = inMemory(1);
      expect(await wait(cap, first), first).to.equal(undefined);
      for (const other of others) expect(await wait(cap, other), other).to.equal(43_200);
    }
    const cap = inMemory(1);
    for (const address of ['2001:db8:0:7::1', '2001:db8:0:8::1', '2001:db8::1', '203.0.113.1', '203.0.113.2'])
      expect(await wait(cap, address), address).to.equal(undefined);
  });

  it('of 0 is none', async () => {
    const cap = inMemory(0);
    for (let count = 0; count < 5; count += 1) expect(await wait(cap)).to.equal(undefined);
  });

  describe('with Redis', () => {
    let redis: TestRedis | undefined;
    let client: Redis;
    const made: Counters[] = [];
    before(async function () {
      redis = await startRedis();
      if (redis === undefined) this.skip();
      client = new Redis(redis.url);
    });
    after(async () => {
      for (const counters of made) counters.close();
      client?.disconnect();
      await redis?.stop();
    });
    const makeCap = async (dailyCap: number): Promise<AddressCap> => {
      const counters = makeCounters(redis?.url, () => {});
      made.push(counters);
      await eventually(async () => expect(await counters.agreeOn('ready', 'x', 1)).to.equal('x'));
      return makeAddressCap({ counters, dailyCap, now: () => NOON });
    };

    it('is counted by all ingresses together, and no address is stored', async () => {
      const [one, other] = [await makeCap(3), await makeCap(3)];
      const seen: (number | undefined)[] = [];
      for (const cap of [one, other, one, other, one]) seen.push(await wait(cap));
      expect(seen).to.deep.equal([undefined, undefined, undefined, 43_200, 43_200]);
      const keys = await client.keys('svc:ip:*');
      expect(keys.filter((key) => key.startsWith('svc:ip:images:'))).to.have.length(1);
      for (const key of keys) {
        expect(`${key} ${await client.get(key)}`).to.not.include(ADDRESS);
        expect(await client.ttl(key)).to.be.within(1, 86_400);
      }
    });

    it('is counted by each for itself while Redis is away', async () => {
      const cap = await makeCap(2);
      await redis?.kill();
      const seen: (number | undefined)[] = [];
      for (let count = 0; count < 3; count += 1) seen.push(await wait(cap, '203.0.113.9'));
      expect(seen).to.deep.equal([undefined, undefined, 43_200]);
      await redis?.restart();
    });
  });
});

describe('the address that is counted over HTTP', () => {
  const behindProxy = withTestService({ workers: 0, config: { ipDailyCap: 1, proxyCount: 1 } });
  const direct = withTestService({ workers: 0, config: { ipDailyCap: 1 } });
  const inspect = (service: typeof direct, forwarded: string) =>
    service.post('/v1/images/inspect', { body: 'no picture', headers: { 'x-forwarded-for': forwarded } });

  it('is the client’s behind a proxy that is trusted, of which nobody can claim another', async () => {
    const statuses: number[] = [];
    for (const forwarded of ['203.0.113.1', '203.0.113.2', '203.0.113.1', '198.51.100.1, 203.0.113.2'])
      statuses.push((await inspect(behindProxy, forwarded)).status);
    expect(statuses).to.deep.equal([400, 400, 429, 429]);
  });

  it('is the connection’s where no proxy is trusted', async () => {
    const statuses: number[] = [];
    for (const forwarded of ['203.0.113.1', '203.0.113.2'])
      statuses.push((await inspect(direct, forwarded)).status);
    expect(statuses).to.deep.equal([400, 429]);
  });
});
