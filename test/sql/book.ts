/**
 * Words for ledger tables: transfers with short names, what came of them as one line of text, and the balances after them.
 * One account a book; requests are named by letters.
 */
import { expect } from 'chai';
import {
  credit,
  makeAccount,
  makeSubmission,
  type Queryable,
  type Settlement,
  type Submission,
  type SubmitOutcome,
  selectOne,
  selectRows,
  settle,
  submit,
  type TestAccountOptions,
} from '../helpers/database.ts';

export type SubmissionChanges = Parameters<typeof makeSubmission>[1];

/** A transfer on a book's account; the answer is what the ledger said, in one line. */
export type Transfer = (book: Book) => Promise<string>;

/** `[balance, held, purchased]`, or none: the account has no balance row. */
export type Balances = readonly [number, number, number] | 'no row';

export interface Book {
  readonly db: Queryable;
  readonly accountId: string;
  readonly initialGrantAp: number;
  readonly requests: Map<string, Submission>;
}

export async function openBook(
  db: Queryable,
  options: TestAccountOptions & { readonly initialGrantAp?: number } = {},
): Promise<Book> {
  return { ...bookOf(db, await makeAccount(db, options)), initialGrantAp: options.initialGrantAp ?? 0 };
}

/** A book of an account that is there, with the requests it is to know. */
export function bookOf(
  db: Queryable,
  accountId: string,
  requests: Readonly<Record<string, Submission>> = {},
): Book {
  return { db, accountId, initialGrantAp: 0, requests: new Map(Object.entries(requests)) };
}

/** `accepted HOLD`, with ` for UNITS` when fewer than asked for; else the refusal with what it says. */
export function reserve(name: string, changes: SubmissionChanges = {}): Transfer {
  return async (book) => (await reserveAll(book, [[name, changes]]))[0] ?? '';
}

/** Several in one batch; their lines are joined by ` | `. */
export function reserveBatch(...items: readonly (readonly [string, SubmissionChanges?])[]): Transfer {
  return async (book) => (await reserveAll(book, items)).join(' | ');
}

async function reserveAll(
  book: Book,
  items: readonly (readonly [string, SubmissionChanges?])[],
): Promise<string[]> {
  const submissions = items.map(([name, changes]) => {
    const submission = makeSubmission(book.accountId, changes);
    book.requests.set(name, submission);
    return submission;
  });
  const outcomes = await submit(book.db, submissions, { initialGrantAp: book.initialGrantAp });
  return outcomes.map((outcome, index) => describeOutcome(book, outcome, submissions[index]));
}

function describeOutcome(book: Book, outcome: SubmitOutcome, submission: Submission | undefined): string {
  if (outcome.outcome === 'accepted') {
    const units = outcome.units === submission?.max_units ? '' : ` for ${outcome.units}`;
    return `accepted ${outcome.hold_ap}${units}`;
  }
  const other = [...book.requests].find(([, request]) => request.id === outcome.other_request_id)?.[0];
  if (other !== undefined) return `${outcome.outcome} of ${other}`;
  if (outcome.cap_ap !== null) return `${outcome.outcome} ${outcome.required_ap}/${outcome.cap_ap}`;
  return `${outcome.outcome} ${outcome.required_ap}/${outcome.available_ap}`;
}

/** Success at a cost. `settled STATE COST`, or `unchanged STATE COST` where somebody ended it before. */
export function post(name: string, costAp: number): Transfer {
  return end(name, { state: 'succeeded', cost_ap: costAp });
}

export function fail(name: string): Transfer {
  return end(name, { state: 'failed', cost_ap: 0, error_code: 'generation_failed' });
}

export function end(name: string, settlement: Omit<Settlement, 'request_id'>): Transfer {
  return async (book) => {
    const [row] = await settle(book.db, [{ request_id: requestId(book, name), ...settlement }]);
    return row === undefined
      ? 'unknown'
      : `${row.is_settled ? 'settled' : 'unchanged'} ${row.state} ${row.cost_ap}`;
  };
}

export function cancel(name: string): Transfer {
  return async (book) => {
    const [row] = await selectRows<{ is_settled: boolean; state: string; cost_ap: number }>(
      book.db,
      'select * from app.cancel_request($1, $2)',
      [requestId(book, name), book.accountId],
    );
    return row === undefined
      ? 'unknown'
      : `${row.is_settled ? 'settled' : 'unchanged'} ${row.state} ${row.cost_ap}`;
  };
}

/** Lets the deadline of these pass, then expires what is due. `expired NAMES`. */
export function expire(...names: readonly string[]): Transfer {
  return async (book) => {
    const ids = names.map((name) => requestId(book, name));
    await book.db.query(
      `update app.holds set deadline_at = now() - interval '1 second' where request_id = any ($1)`,
      [ids],
    );
    const rows = await selectRows<{ request_id: string }>(book.db, 'select * from app.expire_holds()');
    const expired = new Set(rows.map((row) => row.request_id));
    return `expired ${names.filter((_, index) => expired.has(ids[index] ?? '')).join(' ')}`.trim();
  };
}

export function add(kind: 'purchase' | 'grant' | 'adjustment', ap: number): Transfer {
  return async (book) => {
    try {
      return `balance ${(await credit(book.db, book.accountId, ap, kind)).balance_ap}`;
    } catch (error) {
      return (error as Error).message;
    }
  };
}

export function refund(name: string, ap: number): Transfer {
  return async (book) => {
    try {
      const row = await selectOne<{ balance_ap: number }>(
        book.db,
        `select * from app.refund_request($1, $2, 'test', 'test')`,
        [requestId(book, name), ap],
      );
      return `balance ${row.balance_ap}`;
    } catch (error) {
      return (error as Error).message;
    }
  };
}

export function requestId(book: Book, name: string): string {
  const id = book.requests.get(name)?.id;
  if (id === undefined) throw new Error(`no request ${name} in this book`);
  return id;
}

export async function balancesOf(db: Queryable, accountId: string): Promise<Balances> {
  const [row] = await selectRows<{ balance_ap: number; held_ap: number; purchased_ap: number }>(
    db,
    'select * from app.balances where account_id = $1',
    [accountId],
  );
  return row === undefined ? 'no row' : [row.balance_ap, row.held_ap, row.purchased_ap];
}

/** The account's ledger, oldest first: `kind amount`. */
export async function entriesOf(db: Queryable, accountId: string): Promise<string[]> {
  const rows = await selectRows<{ kind: string; amount_ap: number; balance_after_ap: number }>(
    db,
    'select * from app.ledger_entries where account_id = $1 order by id',
    [accountId],
  );
  return rows.map((row) => `${row.kind} ${row.amount_ap} = ${row.balance_after_ap}`);
}

/** The books agree with themselves, and every balance after an entry is the sum of the entries up to it. */
export async function expectCleanLedger(db: Queryable): Promise<void> {
  const { problems, drift_ap: drift } = await selectOne<{ problems: unknown[]; drift_ap: number }>(
    db,
    'select * from app.ledger_check()',
  );
  expect(problems, 'ledger_check').to.deep.equal([]);
  expect(drift).to.equal(0);
  const wrongSums = await selectRows(
    db,
    `select * from (
       select l.*, sum(amount_ap) over (partition by account_id order by id) as sum_ap from app.ledger_entries l
     ) l where balance_after_ap <> sum_ap`,
  );
  expect(wrongSums, 'running balances').to.deep.equal([]);
}
