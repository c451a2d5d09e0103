/**
 * Idempotency keys in the ledger: one request a key and 24 hours, unless nothing came of it.
 */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makeSubmission, selectRows, submit, withDatabase } from '../helpers/database.ts';
import {
  add,
  type Book,
  balancesOf,
  cancel,
  end,
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

const ONE_BODY = '11'.repeat(32);
const OTHER_BODY = '22'.repeat(32);
const DAY_MS = 24 * 60 * 60 * 1000;

const keyed = (changes: SubmissionChanges = {}) => ({
  idempotency_key: 'key',
  body_sha256: ONE_BODY,
  ...changes,
});

/** Lets time pass for the account's keys. */
function passTime(ms: number): Transfer {
  return async (book) => {
    await book.db.query(
      `update app.idempotency_keys set created_at = created_at - make_interval(secs => $2) where account_id = $1`,
      [book.accountId, ms / 1000],
    );
    return 'passed';
  };
}

function markRunning(name: string): Transfer {
  return async (book) => {
    await book.db.query('select app.mark_running($1)', [[requestId(book, name)]]);
    return 'marked';
  };
}

/** Title, lines, and the request that holds the key at the end. */
const TABLES: readonly (readonly [string, readonly (readonly [Transfer, string])[], string | undefined])[] = [
  [
    'is in progress while its request is queued, and while it runs',
    [
      [reserve('a', keyed()), 'accepted 100'],
      [reserve('b', keyed()), 'idempotency_in_progress of a'],
      [markRunning('a'), 'marked'],
      [reserve('c', keyed()), 'idempotency_in_progress of a'],
    ],
    'a',
  ],
  [
    'is replayed once its request succeeded, however often',
    [
      [reserve('a', keyed()), 'accepted 100'],
      [post('a', 10), 'settled succeeded 10'],
      [reserve('b', keyed()), 'replay of a'],
      [reserve('c', keyed()), 'replay of a'],
    ],
    'a',
  ],
  [
    'is free again after a cancelled request, also where that was charged: there is no answer to give again',
    [
      [reserve('a', keyed()), 'accepted 100'],
      [end('a', { state: 'cancelled', cost_ap: 5 }), 'settled cancelled 5'],
      [reserve('b', keyed()), 'accepted 100'],
    ],
    'b',
  ],
  [
    'is in conflict with another body, running or finished',
    [
      [reserve('a', keyed()), 'accepted 100'],
      [reserve('b', keyed({ body_sha256: OTHER_BODY })), 'idempotency_conflict of a'],
      [post('a', 10), 'settled succeeded 10'],
      [reserve('c', keyed({ body_sha256: OTHER_BODY })), 'idempotency_conflict of a'],
      [reserve('d', keyed()), 'replay of a'],
    ],
    'a',
  ],
  [
    'is free again after a failure',
    [
      [reserve('a', keyed()), 'accepted 100'],
      [fail('a'), 'settled failed 0'],
      [reserve('b', keyed({ body_sha256: OTHER_BODY })), 'accepted 100'],
    ],
    'b',
  ],
  [
    'is free again after a cancellation that cost nothing, and after an expiry',
    [
      [reserve('a', keyed()), 'accepted 100'],
      [cancel('a'), 'settled cancelled 0'],
      [reserve('b', keyed()), 'accepted 100'],
      [expire('b'), 'expired b'],
      [reserve('c', keyed()), 'accepted 100'],
    ],
    'c',
  ],
  [
    'is kept by a success that cost nothing',
    [
      [reserve('a', keyed()), 'accepted 100'],
      [post('a', 0), 'settled succeeded 0'],
      [reserve('b', keyed()), 'replay of a'],
    ],
    'a',
  ],
  [
    'is free after a refusal',
    [
      [reserve('a', keyed({ hold_ap: 2000 })), 'insufficient_ap 2000/1000'],
      [reserve('b', keyed({ cap_per_request_ap: 99 })), 'request_over_key_cap 100/99'],
      [add('grant', 1000), 'balance 2000'],
      [reserve('c', keyed({ hold_ap: 2000 })), 'accepted 2000'],
    ],
    'c',
  ],
  [
    'is not taken where every call was refused',
    [[reserve('a', keyed({ hold_ap: 2000 })), 'insufficient_ap 2000/1000']],
    undefined,
  ],
  [
    'is forgotten after 24 hours, not before',
    [
      [reserve('a', keyed()), 'accepted 100'],
      [post('a', 10), 'settled succeeded 10'],
      [passTime(DAY_MS - 5000), 'passed'],
      [reserve('b', keyed()), 'replay of a'],
      [passTime(6000), 'passed'],
      [reserve('c', keyed({ body_sha256: OTHER_BODY })), 'accepted 100'],
      [reserve('d', keyed()), 'idempotency_conflict of c'],
    ],
    'c',
  ],
  [
    'stays with its new request when the old one fails after all',
    [
      [reserve('a', keyed()), 'accepted 100'],
      [passTime(DAY_MS + 1000), 'passed'],
      [reserve('b', keyed()), 'accepted 100'],
      [fail('a'), 'settled failed 0'],
      [reserve('c', keyed()), 'idempotency_in_progress of b'],
    ],
    'b',
  ],
  [
    'belongs to the first of two in one batch',
    [
      [
        reserveBatch(['a', keyed()], ['b', keyed()], ['c', keyed({ body_sha256: OTHER_BODY })]),
        'accepted 100 | idempotency_in_progress of a | idempotency_conflict of a',
      ],
    ],
    'a',
  ],
  [
    'passes to the second of a batch when the first is refused',
    [
      [
        reserveBatch(['a', keyed({ hold_ap: 2000 })], ['b', keyed()]),
        'insufficient_ap 2000/1000 | accepted 100',
      ],
    ],
    'b',
  ],
  [
    'is another key when it is spelled otherwise',
    [
      [reserve('a', keyed({ idempotency_key: 'KEY' })), 'accepted 100'],
      [reserve('b', keyed()), 'accepted 100'],
    ],
    'b',
  ],
];

describe('an idempotency key', () => {
  const database = withDatabase();

  async function holderOf(book: Book): Promise<string | undefined> {
    const rows = await selectRows<{ request_id: string }>(
      database.pool,
      `select request_id from app.idempotency_keys where account_id = $1 and key = 'key'`,
      [book.accountId],
    );
    return [...book.requests].find(([, request]) => request.id === rows[0]?.request_id)?.[0];
  }

  for (const [title, lines, holder] of TABLES) {
    it(title, async () => {
      const book = await openBook(database.pool, { grantedAp: 1000 });
      for (const [index, [transfer, said]] of lines.entries()) {
        expect(await transfer(book), `line ${index + 1}`).to.equal(said);
      }
      expect(await holderOf(book)).to.equal(holder);
      await expectCleanLedger(database.pool);
    });
  }

  it('holds nothing more for a replay, a conflict or a call in progress', async () => {
    const book = await openBook(database.pool, { grantedAp: 1000 });
    await reserve('a', keyed())(book);
    await reserve('b', keyed())(book);
    await reserve('c', keyed({ body_sha256: OTHER_BODY }))(book);
    expect(await balancesOf(database.pool, book.accountId)).to.deep.equal([1000, 100, 0]);
    await post('a', 10)(book);
    await reserve('d', keyed())(book);
    expect(await balancesOf(database.pool, book.accountId)).to.deep.equal([990, 0, 0]);
  });

  it('is each account’s own', async () => {
    const one = await openBook(database.pool, { grantedAp: 1000 });
    const other = await openBook(database.pool, { grantedAp: 1000 });
    expect(await reserve('a', keyed())(one)).to.equal('accepted 100');
    expect(await reserve('a', keyed())(other)).to.equal('accepted 100');
  });

  it('lets one of 20 concurrent calls through', async () => {
    const { accountId } = await openBook(database.pool, { grantedAp: 1000 });
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, () => submit(database.pool, [makeSubmission(accountId, keyed())])),
    );
    const counts = Map.groupBy(outcomes.flat(), (row) => row.outcome);
    expect(counts.get('accepted')).to.have.length(1);
    expect(counts.get('idempotency_in_progress')).to.have.length(19);
    expect(await balancesOf(database.pool, accountId)).to.deep.equal([1000, 100, 0]);
  });
});
