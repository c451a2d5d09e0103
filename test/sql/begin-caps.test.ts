/** Caps that an operator sets on a key that is in use: what it used before counts, and what is open gives back. */
import { expect } from 'chai';
import { beforeEach, describe, it } from 'mocha';
import { withTransaction } from '../../core/database.ts';
import {
  makeKey,
  makeSubmission,
  selectOne,
  selectRows,
  settle,
  submit,
  withDatabase,
} from '../helpers/database.ts';
import {
  type Book,
  cancel,
  expectCleanLedger,
  openBook,
  post,
  requestId,
  reserve,
  type Transfer,
} from './book.ts';

describe('a cap that is set later', () => {
  const database = withDatabase();
  let book: Book;
  let key: string;
  beforeEach(async () => {
    book = await openBook(database.pool, { purchasedAp: 100_000 });
    ({ keyId: key } = await makeKey(database.pool, book.accountId));
  });

  const update = (patch: object) =>
    withTransaction(database.pool, async (client) => {
      await client.query(`select set_config('svc.operator', 'test', true)`);
      await client.query('select admin.update_key($1, $2)', [key, patch]);
    });
  const DAILY = { cap_daily_ap: 1000 };
  const MONTHLY = { cap_monthly_ap: 1000 };
  const hold = (name: string, holdAp: number, caps: object = {}): Transfer =>
    reserve(name, { key_id: key, hold_ap: holdAp, ...caps });
  const used = async (): Promise<string[]> => {
    const rows = await selectRows<{ line: string }>(
      database.pool,
      `select scope || ' ' || used_ap as line from app.cap_usage where subject_id = $1 order by scope, period_start`,
      [key],
    );
    return rows.map((row) => row.line);
  };

  for (const [cap, scope] of [
    [DAILY, 'key:day'],
    [MONTHLY, 'key:month'],
  ] as const) {
    it(`counts what the key has spent, and what it holds (${scope})`, async () => {
      await hold('spent', 500)(book);
      await post('spent', 400)(book);
      await hold('failed', 300)(book);
      await cancel('failed')(book);
      await hold('open', 500)(book);
      await reserve('another key', { hold_ap: 5000 })(book);
      await update(cap);
      expect(await used()).to.deep.equal([`${scope} 900`]);
      expect(await hold('too much', 101, cap)(book)).to.equal('request_over_key_cap 101/1000');
      expect(await post('open', 50)(book)).to.equal('settled succeeded 50');
      expect(await used()).to.deep.equal([`${scope} 450`]);
      expect(await hold('the rest', 550, cap)(book)).to.equal('accepted 550');
      await expectCleanLedger(database.pool);
    });
  }

  it('counts the running day and month, and nothing before them', async () => {
    for (const name of ['this month', 'long ago', 'today']) await hold(name, 100)(book);
    const moveTo = (name: string, at: string) =>
      database.pool.query(`update app.requests set created_at = ${at} where id = $1`, [
        requestId(book, name),
      ]);
    await moveTo('this month', `date_trunc('month', now(), 'utc')`);
    await moveTo('long ago', `date_trunc('month', now(), 'utc') - interval '1 s'`);
    await update({ ...DAILY, ...MONTHLY });
    const isFirstOfMonth = new Date().getUTCDate() === 1;
    expect(await used()).to.deep.equal([`key:day ${isFirstOfMonth ? 200 : 100}`, 'key:month 200']);
    for (const name of ['this month', 'long ago', 'today']) await cancel(name)(book);
    expect(await used()).to.deep.equal(['key:day 0', 'key:month 0']);
  });

  it('counts anew when it was cleared and is set again, and gives back once', async () => {
    await update(DAILY);
    await hold('under the cap', 300, DAILY)(book);
    await update({ cap_daily_ap: null });
    await hold('without', 500)(book);
    await update(DAILY);
    expect(await used()).to.deep.equal(['key:day 800']);
    await post('under the cap', 100)(book);
    await post('without', 100)(book);
    expect(await used()).to.deep.equal(['key:day 200']);
  });

  it('leaves the counter as it is where one cap follows another', async () => {
    await update(DAILY);
    await hold('a', 300, DAILY)(book);
    await update({ cap_daily_ap: 300, name: 'lower' });
    expect(await used()).to.deep.equal(['key:day 300']);
    expect(await hold('b', 1, { cap_daily_ap: 300 })(book)).to.equal('request_over_key_cap 1/300');
  });

  it('is no matter to a key of an account that never had a balance', async () => {
    book = await openBook(database.pool);
    ({ keyId: key } = await makeKey(database.pool, book.accountId));
    await update({ ...DAILY, ...MONTHLY });
    expect(await used()).to.deep.equal([]);
  });

  it('counts right while requests of the key are accepted and ended, and never deadlocks', async () => {
    const spent: number[] = [];
    const one = async (index: number): Promise<void> => {
      const caps = index % 2 === 0 ? { cap_daily_ap: 1_000_000, cap_monthly_ap: 1_000_000 } : {};
      const submissions = [1, 2, 3].map(() =>
        makeSubmission(book.accountId, { key_id: key, hold_ap: 10, ...caps }),
      );
      await submit(database.pool, submissions);
      const costAp = index % 10;
      await settle(
        database.pool,
        submissions.map(({ id }) => ({ request_id: id, state: 'succeeded', cost_ap: costAp })),
      );
      spent.push(3 * costAp);
    };
    const loop = async (offset: number): Promise<void> => {
      for (let index = 0; index < 40; index += 1) await one(index + offset);
    };
    const set = async (): Promise<void> => {
      for (let index = 0; index < 20; index += 1) {
        await update({ cap_daily_ap: 1_000_000, cap_monthly_ap: 1_000_000 });
        await update({ cap_daily_ap: null, cap_monthly_ap: null });
      }
    };
    await Promise.all([...Array.from({ length: 6 }, (_, offset) => loop(offset)), set()]);
    const [last] = [makeSubmission(book.accountId, { key_id: key, hold_ap: 10 })];
    await submit(database.pool, [last]);
    const changing = update({ cap_daily_ap: 1_000_000, cap_monthly_ap: 1_000_000 });
    await settle(database.pool, [{ request_id: last.id, state: 'succeeded', cost_ap: 1 }]);
    await changing;
    const total = spent.reduce((sum, ap) => sum + ap, 1);
    expect(await used()).to.deep.equal([`key:day ${total}`, `key:month ${total}`]);
    const { ap } = await selectOne<{ ap: number }>(
      database.pool,
      'select sum(cost_ap)::bigint as ap from app.requests where key_id = $1',
      [key],
    );
    expect(ap).to.equal(total);
    await expectCleanLedger(database.pool);
  });
});
