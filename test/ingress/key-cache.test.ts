/** Keys in memory: never older than what the database has told, and their last use written in time. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import pg from 'pg';
import type { Pool } from '../../core/database.ts';
import { type KeyCache, makeKeyCache } from '../../ingress/key-cache.ts';
import { makeAccount, makeKey, selectOne, withDatabase } from '../helpers/database.ts';

describe('the key cache', () => {
  const database = withDatabase();

  /** A cache over a pool that counts its lookups and can be held up in them. */
  function makeCountedCache(maxKeys?: number): {
    cache: KeyCache;
    lookups: () => number;
    state: { isFresh: boolean; gate: Promise<void> | undefined };
  } {
    let lookups = 0;
    const state = { isFresh: true, gate: undefined as Promise<void> | undefined };
    const pool = {
      query: async (...args: [never]) => {
        lookups += 1;
        const answer = await database.pool.query(...args);
        await state.gate;
        return answer;
      },
    } as unknown as Pool;
    const cache = makeKeyCache({
      pool,
      isFresh: () => state.isFresh,
      onError: (error) => {
        throw error;
      },
      ...(maxKeys === undefined ? {} : { maxKeys }),
    });
    return { cache, lookups: () => lookups, state };
  }

  it('looks a key up once, and again after a change to its account', async () => {
    const accountId = await makeAccount(database.pool);
    const { secret, keyId } = await makeKey(database.pool, accountId);
    const { cache, lookups } = makeCountedCache();
    const found = await Promise.all([cache.find(secret), cache.find(secret), cache.find(secret)]);
    for (const caller of found) expect(caller?.keyId).to.equal(keyId);
    await cache.find(secret);
    expect(lookups()).to.equal(1);
    cache.forgetAccount('00000000-0000-0000-0000-000000000000');
    await cache.find(secret);
    expect(lookups()).to.equal(1);
    cache.forgetAccount(accountId);
    await cache.find(secret);
    expect(lookups()).to.equal(2);
    cache.forgetAll();
    await cache.find(secret);
    expect(lookups()).to.equal(3);
  });

  it('does not remember a lookup that began before a change', async () => {
    const accountId = await makeAccount(database.pool);
    const { secret } = await makeKey(database.pool, accountId);
    const { cache, state } = makeCountedCache();
    const { promise, resolve } = Promise.withResolvers<void>();
    state.gate = promise;
    const early = cache.find(secret);
    await database.pool.query('update app.keys set revoked_at = now() where account_id = $1', [accountId]);
    cache.forgetAccount(accountId);
    resolve();
    await early;
    expect((await cache.find(secret))?.revokedAt).to.be.instanceOf(Date);
  });

  it('serves nothing from memory while changes do not reach it', async () => {
    const { secret } = await makeKey(database.pool, await makeAccount(database.pool));
    const { cache, lookups, state } = makeCountedCache();
    await cache.find(secret);
    state.isFresh = false;
    await cache.find(secret);
    await cache.find(secret);
    expect(lookups()).to.equal(3);
  });

  it('asks the database nothing about what cannot be a key, and once about one that is unknown', async () => {
    const { cache, lookups } = makeCountedCache();
    for (const text of [
      '',
      'sk-1',
      'svc_live_',
      'svc_live_short',
      `svc_prod_${'x'.repeat(43)}`,
      `svc_live_${'é'.repeat(43)}`,
    ]) {
      expect(await cache.find(text)).to.equal(undefined);
    }
    expect(lookups()).to.equal(0);
    for (let index = 0; index < 3; index += 1) {
      expect(await cache.find(`svc_live_${'x'.repeat(43)}`)).to.equal(undefined);
    }
    expect(lookups()).to.equal(1);
  });

  it('does not forget known keys for unknown ones, and keeps nothing of those it forgets', async () => {
    const keys: string[] = [];
    for (let index = 0; index < 3; index += 1)
      keys.push((await makeKey(database.pool, await makeAccount(database.pool))).secret);
    const [first, second, third] = keys as [string, string, string];
    const { cache, lookups } = makeCountedCache(2);
    await cache.find(first);
    await cache.find(second);
    for (let index = 0; index < 10; index += 1) await cache.find(`svc_live_${index}${'x'.repeat(42)}`);
    await cache.find(first);
    expect(lookups()).to.equal(12);
    await cache.find(third);
    expect(cache.size).to.deep.equal({ known: 2, accounts: 2 });
    cache.forgetAll();
    expect(cache.size).to.deep.equal({ known: 0, accounts: 0 });
  });

  it('looks up few keys at a time', async () => {
    const { cache, lookups, state } = makeCountedCache();
    const { promise, resolve } = Promise.withResolvers<void>();
    state.gate = promise;
    const guesses = Array.from({ length: 20 }, (_, index) =>
      cache.find(`svc_live_${index}${'y'.repeat(42)}`),
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(lookups()).to.equal(8);
    resolve();
    expect(await Promise.all(guesses)).to.deep.equal(Array.from({ length: 20 }, () => undefined));
    expect(lookups()).to.equal(20);
  });

  it('writes when a key was last used, which tells nobody of a change', async () => {
    const accountId = await makeAccount(database.pool);
    const { secret, keyId } = await makeKey(database.pool, accountId);
    const { cache } = makeCountedCache();
    const lastUse = async () =>
      (
        await selectOne<{ at: Date | null }>(
          database.pool,
          'select last_used_at as at from app.keys where id = $1',
          [keyId],
        )
      ).at;
    const listener = new pg.Client(database.url);
    await listener.connect();
    const heard: string[] = [];
    listener.on('notification', ({ payload }) => heard.push(payload ?? ''));
    await listener.query('listen svc_accounts');
    await listener.query('listen done');

    await cache.touch();
    expect(await lastUse()).to.equal(null);
    await cache.find(secret);
    await cache.close();
    expect((await lastUse())?.getTime()).to.be.within(Date.now() - 60_000, Date.now() + 60_000);

    await database.pool.query('update app.keys set name = name where id = $1', [keyId]);
    await database.pool.query('notify done');
    while (heard.at(-1) !== '') await new Promise((resolve) => listener.once('notification', resolve));
    expect(heard).to.deep.equal([accountId, '']); // the renaming alone
    await listener.end();
  });
});
