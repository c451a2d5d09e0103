/**
 * app.ledger_check finds every fault it is there to find. The faults are made with the guards switched off, since no
 * function of the service can make them.
 */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { v7 } from 'uuid';
import {
  makeAccount,
  makeSubmission,
  type Queryable,
  selectOne,
  settle,
  submit,
  withDatabase,
  withRollback,
} from '../helpers/database.ts';

interface Books {
  readonly accountId: string;
  readonly openId: string;
  readonly chargedId: string;
}

interface Report {
  readonly accounts: number;
  readonly entries: number;
  readonly open_holds: number;
  readonly stale_holds: number;
  readonly drift_ap: number;
  readonly problems: readonly Readonly<Record<string, unknown>>[];
}

type Fault = readonly [
  title: string,
  make: (books: Books) => string,
  problems: (books: Books) => readonly Readonly<Record<string, unknown>>[],
  driftAp: number,
];

const FAULTS: readonly Fault[] = [
  [
    'a balance that is not the sum of its entries',
    ({ accountId }) =>
      `update app.balances set balance_ap = balance_ap + 3 where account_id = '${accountId}'`,
    ({ accountId }) => [
      { problem: 'balance_differs_from_ledger', account_id: accountId, balance_ap: 993, ledger_ap: 990 },
    ],
    3,
  ],
  [
    'a balance that has lost its row',
    ({ accountId }) => `delete from app.balances where account_id = '${accountId}'`,
    ({ accountId }) => [
      { problem: 'balance_differs_from_ledger', account_id: accountId, balance_ap: 0, ledger_ap: 990 },
      { problem: 'held_differs_from_open_holds', account_id: accountId, held_ap: 0, open_holds_ap: 100 },
    ],
    1090,
  ],
  [
    'a held amount that is not the sum of the open holds',
    ({ accountId }) => `update app.balances set held_ap = held_ap - 1 where account_id = '${accountId}'`,
    ({ accountId }) => [
      { problem: 'held_differs_from_open_holds', account_id: accountId, held_ap: 99, open_holds_ap: 100 },
    ],
    1,
  ],
  [
    'a hold that housekeeping forgot',
    ({ openId }) => `update app.holds set deadline_at = 'epoch' where request_id = '${openId}'`,
    ({ openId }) => [
      { problem: 'hold_past_its_deadline', request_id: openId, deadline_at: '1970-01-01T00:00:00+00:00' },
    ],
    0,
  ],
  [
    'a finished request with an open hold',
    ({ openId }) =>
      `update app.requests set state = 'failed', error_code = 'x', cost_ap = 0, finished_at = now() where id = '${openId}'`,
    ({ openId }) => [{ problem: 'hold_without_open_request', request_id: openId, state: 'failed' }],
    0,
  ],
  [
    'a hold of another amount than its request says',
    ({ openId }) => `update app.requests set hold_ap = 101 where id = '${openId}'`,
    ({ openId }) => [{ problem: 'hold_without_open_request', request_id: openId, state: 'queued' }],
    0,
  ],
  [
    'a hold without a request',
    ({ openId }) => `delete from app.requests where id = '${openId}'`,
    ({ openId }) => [{ problem: 'hold_without_open_request', request_id: openId, state: null }],
    0,
  ],
  [
    'an open request without a hold',
    ({ openId, accountId }) =>
      `delete from app.holds where request_id = '${openId}';
       update app.balances set held_ap = 0 where account_id = '${accountId}'`,
    ({ openId }) => [{ problem: 'open_request_without_hold', request_id: openId }],
    0,
  ],
  [
    'a charge that is not its request’s cost',
    ({ chargedId }) => `update app.requests set cost_ap = 9 where id = '${chargedId}'`,
    ({ chargedId }) => [
      { problem: 'charge_differs_from_request', request_id: chargedId, charged_ap: 10, cost_ap: 9 },
    ],
    0,
  ],
  [
    'a cost that was never charged',
    ({ chargedId, accountId }) =>
      `delete from app.ledger_entries where request_id = '${chargedId}';
       update app.balances set balance_ap = 1000 where account_id = '${accountId}'`,
    ({ chargedId }) => [{ problem: 'cost_without_charge', request_id: chargedId, cost_ap: 10 }],
    0,
  ],
];

describe('ledger_check', () => {
  const database = withDatabase();

  const check = async (db: Queryable): Promise<Report> =>
    await selectOne<Report & Record<string, unknown>>(db, 'select * from app.ledger_check()');

  async function makeBooks(db: Queryable): Promise<Books> {
    const accountId = await makeAccount(db, { grantedAp: 1000 });
    const [open, charged] = [makeSubmission(accountId), makeSubmission(accountId)];
    await submit(db, [open, charged]);
    await settle(db, [{ request_id: charged.id, state: 'succeeded', cost_ap: 10 }]);
    return { accountId, openId: open.id, chargedId: charged.id };
  }

  it('finds nothing in empty books', async () => {
    expect(await check(database.pool)).to.deep.equal({
      accounts: 0,
      entries: 0,
      open_holds: 0,
      stale_holds: 0,
      drift_ap: 0,
      problems: [],
    });
  });

  it('counts accounts, entries and open holds, and finds nothing wrong with good books', async () => {
    await withRollback(database.pool, async (db) => {
      await makeBooks(db);
      await makeAccount(db);
      expect(await check(db)).to.deep.equal({
        accounts: 2,
        entries: 2,
        open_holds: 1,
        stale_holds: 0,
        drift_ap: 0,
        problems: [],
      });
    });
  });

  for (const [title, make, problems, driftAp] of FAULTS) {
    it(`finds ${title}`, async () => {
      await withRollback(database.pool, async (db) => {
        const books = await makeBooks(db);
        await db.query(
          `set local timezone = 'UTC'; set local session_replication_role = replica; ${make(books)}`,
        );
        const report = await check(db);
        expect(report.problems).to.have.deep.members([...problems(books)]);
        expect(report.drift_ap).to.equal(driftAp);
        expect(report.stale_holds).to.equal(title.includes('forgot') ? 1 : 0);
      });
    });
  }

  it('names at most 100 of a kind', async () => {
    await withRollback(database.pool, async (db) => {
      const accountId = await makeAccount(db, { grantedAp: 1000 });
      await db.query(
        `insert into app.holds (request_id, account_id, amount_ap, deadline_at)
           select id::uuid, $2, 0, now() from unnest($1::text[]) id`,
        [Array.from({ length: 101 }, () => v7()), accountId],
      );
      expect((await check(db)).problems).to.have.length(100);
    });
  });
});
