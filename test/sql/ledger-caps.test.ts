/**
 * Caps in the ledger: a key's per request, day and month, and an account's daily allowance of granted AP per area.
 * Open holds count in full; what is not spent is given back to the period in which it was held.
 */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makeSubmission, selectRows, submit, withDatabase } from '../helpers/database.ts';
import {
  type Book,
  balancesOf,
  cancel,
  expectCleanLedger,
  expire,
  fail,
  openBook,
  post,
  requestId,
  reserve,
  reserveBatch,
  type SubmissionChanges,
  type Transfer,
} from './book.ts';

const KEY = '00000000-0000-4000-8000-000000000001';
const OTHER_KEY = '00000000-0000-4000-8000-000000000002';

const daily = (holdAp: number, capAp: number | null = 100, changes: SubmissionChanges = {}) =>
  ({ key_id: KEY, hold_ap: holdAp, cap_daily_ap: capAp, ...changes }) as const;
const monthly = (holdAp: number, capAp = 100) =>
  ({ key_id: KEY, hold_ap: holdAp, cap_monthly_ap: capAp }) as const;
const granted = (holdAp: number, area = 'llm') =>
  ({ hold_ap: holdAp, grant_daily_cap_ap: 100, area }) as const;

interface Table {
  readonly title: string;
  readonly grantedAp?: number;
  readonly purchasedAp?: number;
  readonly initialGrantAp?: number;
  readonly lines: readonly (readonly [Transfer, string])[];
  /** `scope used`, of the key or the account, at the end. */
  readonly used?: readonly string[];
}

const TABLES: Record<string, readonly Table[]> = {
  'a key’s cap per request': [
    {
      title: 'lets through what it allows and no more',
      lines: [
        [reserve('a', { cap_per_request_ap: 100, hold_ap: 100 }), 'accepted 100'],
        [reserve('b', { cap_per_request_ap: 99, hold_ap: 100 }), 'request_over_key_cap 100/99'],
        [reserve('c', { cap_per_request_ap: 0, hold_ap: 0 }), 'accepted 0'],
      ],
      used: [],
    },
    {
      title: 'looks at what is held after lowering to the balance',
      grantedAp: 50,
      lines: [
        [
          reserve('a', { cap_per_request_ap: 50, fixed_milli_ap: 0, unit_milli_ap: 1000, max_units: 99 }),
          'accepted 50 for 50',
        ],
      ],
    },
    {
      title: 'is looked at before the balance',
      grantedAp: 10,
      lines: [
        [reserve('a', { cap_per_request_ap: 99, hold_ap: 100 }), 'request_over_key_cap 100/99'],
        [reserve('b', { cap_per_request_ap: 100, hold_ap: 100 }), 'insufficient_ap 100/10'],
      ],
    },
  ],
  'a key’s cap per day': [
    {
      title: 'counts open holds in full',
      lines: [
        [reserve('a', daily(60)), 'accepted 60'],
        [reserve('b', daily(41)), 'request_over_key_cap 41/100'],
        [reserve('c', daily(40)), 'accepted 40'],
        [reserve('d', daily(1)), 'request_over_key_cap 1/100'],
      ],
      used: ['key:day 100'],
    },
    {
      title: 'gives back what was not spent',
      lines: [
        [reserve('a', daily(60)), 'accepted 60'],
        [post('a', 10), 'settled succeeded 10'],
        [reserve('b', daily(91)), 'request_over_key_cap 91/100'],
        [reserve('c', daily(90)), 'accepted 90'],
        [cancel('c'), 'settled cancelled 0'],
        [reserve('d', daily(80)), 'accepted 80'],
        [fail('d'), 'settled failed 0'],
        [reserve('e', daily(70)), 'accepted 70'],
        [expire('e'), 'expired e'],
      ],
      used: ['key:day 10'],
    },
    {
      title: 'counts nothing for what is refused for want of AP',
      grantedAp: 10,
      lines: [
        [reserve('a', daily(60)), 'insufficient_ap 60/10'],
        [reserve('b', daily(10)), 'accepted 10'],
      ],
      used: ['key:day 10'],
    },
    {
      title: 'is looked at before the balance',
      grantedAp: 50,
      lines: [
        [reserve('a', daily(40)), 'accepted 40'],
        [reserve('b', daily(70)), 'request_over_key_cap 70/100'],
      ],
      used: ['key:day 40'],
    },
    {
      title: 'sees the earlier ones of the same batch',
      lines: [
        [
          reserveBatch(['a', daily(60)], ['b', daily(60)], ['c', daily(40)]),
          'accepted 60 | request_over_key_cap 60/100 | accepted 40',
        ],
      ],
      used: ['key:day 100'],
    },
    {
      title: 'is each key’s own',
      lines: [
        [reserve('a', daily(100)), 'accepted 100'],
        [reserve('b', daily(100, 100, { key_id: OTHER_KEY })), 'accepted 100'],
        [reserve('c', daily(100, null)), 'accepted 100'],
      ],
      used: ['key:day 100'],
    },
  ],
  'a key’s cap per month': [
    {
      title: 'counts and gives back like that of the day',
      lines: [
        [reserve('a', monthly(60)), 'accepted 60'],
        [reserve('b', monthly(41)), 'request_over_key_cap 41/100'],
        [post('a', 1), 'settled succeeded 1'],
        [reserve('c', monthly(99)), 'accepted 99'],
      ],
      used: ['key:month 100'],
    },
    {
      title: 'stands beside that of the day',
      lines: [
        [reserve('a', { ...monthly(60, 80), cap_daily_ap: 100 }), 'accepted 60'],
        [reserve('b', { ...monthly(40, 80), cap_daily_ap: 100 }), 'request_over_key_cap 40/80'],
        [reserve('c', { ...monthly(41, 200), cap_daily_ap: 100 }), 'request_over_key_cap 41/100'],
        [post('a', 50), 'settled succeeded 50'],
      ],
      used: ['key:day 50', 'key:month 50'],
    },
  ],
  'the daily allowance of granted AP': [
    {
      title: 'ends with user_daily_cap',
      lines: [
        [reserve('a', granted(60)), 'accepted 60'],
        [reserve('b', granted(41)), 'user_daily_cap 41/100'],
        [post('a', 30), 'settled succeeded 30'],
        [reserve('c', granted(70)), 'accepted 70'],
      ],
      used: ['account:llm:day 100'],
    },
    {
      title: 'is each area’s own',
      lines: [
        [reserve('a', granted(100)), 'accepted 100'],
        [reserve('b', granted(100, 'tts')), 'accepted 100'],
        [reserve('c', granted(1, 'tts')), 'user_daily_cap 1/100'],
      ],
      used: ['account:llm:day 100', 'account:tts:day 100'],
    },
    {
      title: 'is not for bought AP, until all that was bought is held',
      grantedAp: 1000,
      purchasedAp: 150,
      lines: [
        [reserve('a', granted(120)), 'accepted 120'],
        [reserve('b', granted(120)), 'accepted 120'],
        [reserve('c', granted(101)), 'user_daily_cap 101/100'],
        [reserve('d', granted(100)), 'accepted 100'],
        [post('a', 0), 'settled succeeded 0'],
        [reserve('e', granted(500)), 'user_daily_cap 500/100'],
        [post('b', 0), 'settled succeeded 0'],
        [reserve('f', granted(500)), 'accepted 500'],
      ],
      used: ['account:llm:day 100'],
    },
    {
      title: 'holds for the initial grant from its first call on',
      grantedAp: 0,
      initialGrantAp: 1000,
      lines: [
        [reserve('a', granted(101)), 'user_daily_cap 101/100'],
        [reserve('b', granted(100)), 'accepted 100'],
      ],
      used: ['account:llm:day 100'],
    },
  ],
};

describe('caps', () => {
  const database = withDatabase();

  async function usedBy(book: Book, keyId?: string): Promise<string[]> {
    const rows = await selectRows<{ line: string }>(
      database.pool,
      `select scope || ' ' || used_ap as line from app.cap_usage where subject_id = any ($1) order by scope`,
      [[book.accountId, ...(keyId === undefined ? [] : [keyId])]],
    );
    return rows.map((row) => row.line);
  }

  for (const [area, tables] of Object.entries(TABLES)) {
    describe(area, () => {
      for (const table of tables) {
        it(table.title, async () => {
          await database.pool.query('delete from app.cap_usage');
          const book = await openBook(database.pool, { grantedAp: 10_000, ...table });
          for (const [index, [transfer, said]] of table.lines.entries()) {
            expect(await transfer(book), `line ${index + 1}`).to.equal(said);
          }
          if (table.used !== undefined) expect(await usedBy(book, KEY)).to.deep.equal(table.used);
          await expectCleanLedger(database.pool);
        });
      }
    });
  }

  it('say when they reset: at the next UTC day or month, or never', async () => {
    const { accountId } = await openBook(database.pool, { grantedAp: 1000 });
    const now = new Date();
    const nextDay = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1));
    const nextMonth = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
    const cases = [
      [{ cap_per_request_ap: 1 }, null],
      [{ cap_daily_ap: 1 }, nextDay],
      [{ cap_monthly_ap: 1 }, nextMonth],
      [{ grant_daily_cap_ap: 1 }, nextDay],
    ] as const;
    for (const [changes, resetsAt] of cases) {
      const [row] = await submit(database.pool, [makeSubmission(accountId, changes)]);
      expect(row?.resets_at, JSON.stringify(changes)).to.deep.equal(resetsAt);
    }
  });

  it('give back to the day and month of the hold, not of its settlement', async () => {
    const book = await openBook(database.pool, { grantedAp: 1000 });
    const key = makeSubmission(book.accountId).key_id;
    const capped = { key_id: key, hold_ap: 60, cap_daily_ap: 100, cap_monthly_ap: 100 };
    await reserve('old', capped)(book);
    // the request was made 40 days ago
    await database.pool.query(
      `update app.requests set created_at = created_at - interval '40 days' where id = $1`,
      [requestId(book, 'old')],
    );
    await database.pool.query(
      `update app.cap_usage set period_start = case scope
         when 'key:day' then (now() at time zone 'utc' - interval '40 days')::date
         else date_trunc('month', now() at time zone 'utc' - interval '40 days')::date end
       where subject_id = $1`,
      [key],
    );
    await reserve('new', capped)(book);
    await post('old', 10)(book);
    const rows = await selectRows<{ line: string }>(
      database.pool,
      `select scope || ' ' || used_ap as line from app.cap_usage where subject_id = $1 order by scope, period_start`,
      [key],
    );
    expect(rows.map((row) => row.line)).to.deep.equal([
      'key:day 10',
      'key:day 60',
      'key:month 10',
      'key:month 60',
    ]);
  });

  it('let through exactly what fits of 20 concurrent calls', async () => {
    const { accountId } = await openBook(database.pool, { grantedAp: 10_000 });
    const key = makeSubmission(accountId).key_id;
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, () =>
        submit(database.pool, [makeSubmission(accountId, { key_id: key, hold_ap: 10, cap_daily_ap: 105 })]),
      ),
    );
    const counts = Map.groupBy(outcomes.flat(), (row) => row.outcome);
    expect(counts.get('accepted')).to.have.length(10);
    expect(counts.get('request_over_key_cap')).to.have.length(10);
    expect(await balancesOf(database.pool, accountId)).to.deep.equal([10_000, 100, 0]);
  });
});
