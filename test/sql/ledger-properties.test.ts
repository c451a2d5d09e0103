/**
 * Any sequence of transfers, one after the other and all at once: the books agree with themselves, and with a model of them
 * written here. The model knows no SQL: it is the specification (section 2) in thirty lines.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { describe, it } from 'mocha';
import pg from 'pg';
import {
  makeAccount,
  makeSubmission,
  type Settlement,
  type Submission,
  type SubmitOutcome,
  selectRows,
  settle,
  submit,
  withDatabase,
} from '../helpers/database.ts';
import { add, balancesOf, bookOf, expectCleanLedger, refund } from './book.ts';

const INITIAL_GRANT_AP = 500;
const ACCOUNTS = 3;

type Step =
  | { readonly kind: 'submit'; readonly items: readonly SubmitItem[] }
  | { readonly kind: 'settle'; readonly items: readonly SettleItem[] }
  | { readonly kind: 'cancel' | 'markRunning'; readonly pick: number }
  | { readonly kind: 'expire'; readonly picks: readonly number[] }
  | { readonly kind: 'credit'; readonly account: number; readonly ap: number; readonly as: CreditKind }
  | { readonly kind: 'refund'; readonly pick: number; readonly ap: number };
type CreditKind = 'purchase' | 'grant' | 'adjustment';

interface SubmitItem {
  readonly account: number;
  readonly fixedMilliAp: number;
  readonly unitMilliAp: number;
  readonly minUnits: number;
  readonly maxUnits: number;
  readonly isGrantAllowed: boolean;
}

interface SettleItem {
  readonly pick: number;
  readonly state: Settlement['state'];
  readonly costAp: number;
}

const account = fc.nat(ACCOUNTS - 1);
const pick = fc.nat(40);
const submitItem: fc.Arbitrary<SubmitItem> = fc.record({
  account,
  fixedMilliAp: fc.oneof(fc.nat(300_000), fc.constantFrom(0, 1, 999, 1000, 1001)),
  unitMilliAp: fc.constantFrom(0, 1, 37, 1000),
  minUnits: fc.constantFrom(1, 16),
  maxUnits: fc.integer({ min: 1, max: 600 }),
  isGrantAllowed: fc.boolean(),
});
const settleItem: fc.Arbitrary<SettleItem> = fc.record({
  pick,
  state: fc.constantFrom('succeeded', 'succeeded', 'succeeded', 'failed', 'cancelled'),
  costAp: fc.integer({ min: -5, max: 700 }),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('submit'),
      items: fc.array(submitItem, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('settle'),
      items: fc.array(settleItem, { minLength: 1, maxLength: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('cancel', 'markRunning'), pick }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('expire'),
      picks: fc.array(pick, { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('credit'),
      account,
      ap: fc.integer({ min: 1, max: 300 }),
      as: fc.constantFrom('purchase', 'grant'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('credit'),
      account,
      ap: fc.integer({ min: -300, max: -1 }),
      as: fc.constant('adjustment'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('refund'), pick, ap: fc.integer({ min: 1, max: 200 }) }),
  },
);

interface ModelAccount {
  balance: number;
  held: number;
  purchased: number;
  hadGrant: boolean;
  exists: boolean;
}

interface ModelRequest {
  readonly id: string;
  readonly account: number;
  readonly holdAp: number;
  state: string;
  costAp: number;
  refundedAp: number;
}

/** What should happen, by the specification. */
class Model {
  readonly accounts: ModelAccount[] = Array.from({ length: ACCOUNTS }, () => ({
    balance: 0,
    held: 0,
    purchased: 0,
    hadGrant: false,
    exists: false,
  }));
  readonly requests: ModelRequest[] = [];

  submit(item: SubmitItem, id: string): string {
    const book = this.of(item.account);
    const grant = book.hadGrant || !item.isGrantAllowed ? 0 : INITIAL_GRANT_AP;
    const available = book.balance - book.held + grant;
    const holdFor = (units: number) => Math.ceil((item.fixedMilliAp + units * item.unitMilliAp) / 1000);
    let units = item.maxUnits;
    while (holdFor(units) > available && units > item.minUnits && item.unitMilliAp > 0) units -= 1;
    const holdAp = holdFor(units);
    if (holdAp > available) {
      return !book.hadGrant && !item.isGrantAllowed && book.balance === 0
        ? 'account_too_new'
        : 'insufficient_ap';
    }
    book.exists = true;
    if (grant > 0) {
      book.balance += grant;
      book.hadGrant = true;
    }
    book.held += holdAp;
    this.requests.push({ id, account: item.account, holdAp, state: 'open', costAp: 0, refundedAp: 0 });
    return `accepted ${holdAp} for ${units}`;
  }

  end(request: ModelRequest, state: string, costAp: number): boolean {
    if (request.state !== 'open') return false;
    request.state = state;
    request.costAp = Math.min(Math.max(costAp, 0), request.holdAp);
    const book = this.of(request.account);
    book.held -= request.holdAp;
    book.balance -= request.costAp;
    book.purchased = Math.max(book.purchased - request.costAp, 0);
    return true;
  }

  credit(index: number, ap: number, kind: CreditKind): void {
    const book = this.of(index);
    if (book.balance - book.held + ap < 0) return;
    book.exists = true;
    book.balance += ap;
    book.purchased = kind === 'purchase' ? book.purchased + ap : Math.min(book.purchased, book.balance);
  }

  refund(request: ModelRequest, ap: number): void {
    if (request.state === 'open' || ap > request.costAp - request.refundedAp) return;
    request.refundedAp += ap;
    this.of(request.account).purchased += ap;
    this.of(request.account).balance += ap;
  }

  of(index: number): ModelAccount {
    return this.accounts[index] as ModelAccount;
  }

  pick(index: number): ModelRequest | undefined {
    return this.requests[index % Math.max(this.requests.length, 1)];
  }
}

const settlementOf = (requestId: string, item: SettleItem): Settlement => ({
  request_id: requestId,
  state: item.state,
  // a failure costs nothing: workers never say otherwise (failure_costs_nothing)
  cost_ap: item.state === 'failed' ? 0 : item.costAp,
  ...(item.state === 'failed' ? { error_code: 'generation_failed' } : {}),
});

const submissionOf = (accountId: string, item: SubmitItem): Submission =>
  makeSubmission(accountId, {
    fixed_milli_ap: item.fixedMilliAp,
    unit_milli_ap: item.unitMilliAp,
    min_units: item.minUnits,
    max_units: item.maxUnits,
    is_grant_allowed: item.isGrantAllowed,
  });

const describeOutcome = (row: SubmitOutcome): string =>
  row.outcome === 'accepted' ? `accepted ${row.hold_ap} for ${row.units}` : row.outcome;

describe('the ledger, in any sequence', () => {
  const database = withDatabase();

  it('does what the model does, one transfer after the other', async function () {
    this.timeout(60_000);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
        const model = new Model();
        const accountIds = await Promise.all(model.accounts.map(() => makeAccount(database.pool)));
        for (const one of steps) await follow(model, accountIds, one);
        for (const [index, id] of accountIds.entries()) {
          const { exists, balance, held, purchased } = model.of(index);
          expect(await balancesOf(database.pool, id)).to.deep.equal(
            exists ? [balance, held, purchased] : 'no row',
          );
        }
      }),
      { numRuns: 40 },
    );
    await expectCleanLedger(database.pool);
  });

  /** One step, here and in the model; what each says must be the same. */
  async function follow(model: Model, accountIds: readonly string[], one: Step): Promise<void> {
    const accountId = (index: number): string => accountIds[index] ?? '';
    switch (one.kind) {
      case 'submit': {
        const submissions = one.items.map((item) => submissionOf(accountId(item.account), item));
        const rows = await submit(database.pool, submissions, { initialGrantAp: INITIAL_GRANT_AP });
        const said = one.items.map((item, index) => model.submit(item, submissions[index]?.id ?? ''));
        expect(rows.map(describeOutcome)).to.deep.equal(said);
        return;
      }
      case 'settle': {
        // one settlement a request: which of two counts is not promised
        const items = new Map(
          one.items.flatMap((item) => {
            const request = model.pick(item.pick);
            return request === undefined ? [] : [[request, item] as const];
          }),
        );
        const rows = await settle(
          database.pool,
          [...items].map(([request, item]) => settlementOf(request.id, item)),
        );
        for (const [request, item] of items) {
          const isSettled = model.end(request, item.state, item.state === 'failed' ? 0 : item.costAp);
          expect(rows.find((row) => row.request_id === request.id)).to.deep.equal({
            request_id: request.id,
            is_settled: isSettled,
            state: request.state,
            cost_ap: request.costAp,
          });
        }
        expect(rows).to.have.length(items.size);
        return;
      }
      case 'cancel': {
        const request = model.pick(one.pick);
        if (request === undefined) return;
        const rows = await selectRows(database.pool, 'select is_settled from app.cancel_request($1, null)', [
          request.id,
        ]);
        expect(rows).to.deep.equal([{ is_settled: model.end(request, 'cancelled', 0) }]);
        return;
      }
      case 'markRunning': {
        const request = model.pick(one.pick);
        if (request !== undefined) await database.pool.query('select app.mark_running($1)', [[request.id]]);
        return;
      }
      case 'expire': {
        const picked = new Set(one.picks.map((index) => model.pick(index)));
        picked.delete(undefined);
        const requests = [...picked] as ModelRequest[];
        const due = requests
          .filter((request) => model.end(request, 'expired', 0))
          .map((request) => request.id);
        await letPass(requests.map((request) => request.id));
        const rows = await selectRows<{ request_id: string }>(
          database.pool,
          'select * from app.expire_holds()',
        );
        expect(rows.map((row) => row.request_id)).to.have.members(due);
        return;
      }
      case 'credit': {
        await add(one.as, one.ap)(bookOf(database.pool, accountId(one.account)));
        model.credit(one.account, one.ap, one.as);
        return;
      }
      case 'refund': {
        const request = model.pick(one.pick);
        if (request === undefined) return;
        const it = makeSubmission(accountId(request.account), { id: request.id });
        await refund('it', one.ap)(bookOf(database.pool, it.account_id, { it }));
        model.refund(request, one.ap);
      }
    }
  }

  async function letPass(requestIds: readonly string[]): Promise<void> {
    await database.pool.query(
      `update app.holds set deadline_at = now() - interval '1 second' where request_id = any ($1)`,
      [requestIds],
    );
  }
});

describe('the ledger, all at once', () => {
  const database = withDatabase();

  it('resolves each hold once, whoever comes first, and never deadlocks', async function () {
    this.timeout(60_000);
    const pool = new pg.Pool({ connectionString: database.url, max: 12 });
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 120 }), async (steps) => {
          await race(pool, steps);
        }),
        { numRuns: 20, endOnFailure: true }, // a race does not shrink
      );
    } finally {
      await pool.end();
    }
    await expectCleanLedger(database.pool);
  });

  /** All steps at once on 12 connections, about requests that exist before; the sums must come out. */
  async function race(pool: pg.Pool, steps: readonly Step[]): Promise<void> {
    const accountIds = await Promise.all(
      Array.from({ length: ACCOUNTS }, () => makeAccount(pool, { grantedAp: 3000, purchasedAp: 3000 })),
    );
    const accountId = (index: number): string => accountIds[index] ?? '';
    const prepared = Array.from({ length: 30 }, (_, index) =>
      makeSubmission(accountId(index % ACCOUNTS), { hold_ap: 100 }),
    );
    const idOf = (index: number): string => prepared[index % prepared.length]?.id ?? '';
    const accepted = new Map<string, { readonly account: string; readonly holdAp: number }>();
    const settled = new Map<string, number[]>();
    const credits: number[] = accountIds.map(() => 6000);

    const noteSubmitted = (submissions: readonly Submission[], rows: readonly SubmitOutcome[]): void => {
      for (const [index, row] of rows.entries()) {
        const submission = submissions[index];
        if (submission === undefined || row.outcome !== 'accepted') continue;
        accepted.set(submission.id, { account: submission.account_id, holdAp: row.hold_ap ?? 0 });
      }
    };
    const noteSettled = (id: string, costAp: number): void => {
      settled.set(id, [...(settled.get(id) ?? []), costAp]);
    };
    noteSubmitted(prepared, await submit(pool, prepared, { initialGrantAp: INITIAL_GRANT_AP }));
    for (const index of accountIds.keys()) credits[index] = 6000 + INITIAL_GRANT_AP;

    const perform = async (one: Step): Promise<void> => {
      switch (one.kind) {
        case 'submit': {
          const submissions = one.items.map((item) => submissionOf(accountId(item.account), item));
          noteSubmitted(submissions, await submit(pool, submissions, { initialGrantAp: INITIAL_GRANT_AP }));
          return;
        }
        case 'settle': {
          const settlements = one.items.map((item) => settlementOf(idOf(item.pick), item));
          for (const row of await settle(pool, settlements)) {
            if (row.is_settled) noteSettled(row.request_id, row.cost_ap);
          }
          return;
        }
        case 'cancel': {
          const rows = await selectRows<{ request_id: string; is_settled: boolean }>(
            pool,
            'select * from app.cancel_request($1, null)',
            [idOf(one.pick)],
          );
          for (const row of rows) if (row.is_settled) noteSettled(row.request_id, 0);
          return;
        }
        case 'markRunning':
          await pool.query('select app.mark_running($1)', [prepared.map((request) => request.id)]);
          return;
        case 'expire': {
          await pool.query(
            `update app.holds set deadline_at = now() - interval '1 second' where request_id = $1`,
            [idOf(one.picks[0] ?? 0)],
          );
          const rows = await selectRows<{ request_id: string }>(pool, 'select * from app.expire_holds()');
          for (const row of rows) noteSettled(row.request_id, 0);
          return;
        }
        case 'credit': {
          const said = await add(one.as, one.ap)(bookOf(pool, accountId(one.account)));
          if (said.startsWith('balance')) credits[one.account] = (credits[one.account] ?? 0) + one.ap;
          return;
        }
        case 'refund': {
          const it = prepared[one.pick % prepared.length] as Submission;
          const said = await refund('it', one.ap)(bookOf(pool, it.account_id, { it }));
          const index = accountIds.indexOf(it.account_id);
          if (said.startsWith('balance')) credits[index] = (credits[index] ?? 0) + one.ap;
        }
      }
    };
    await Promise.all(steps.map(perform));

    for (const [id, costs] of settled) expect(costs, `request ${id} was ended`).to.have.length(1);
    for (const [index, id] of accountIds.entries()) {
      const mine = [...accepted].filter(([, request]) => request.account === id);
      const spent = mine.reduce((sum, [request]) => sum + (settled.get(request)?.[0] ?? 0), 0);
      const held = mine.reduce((sum, [request, { holdAp }]) => sum + (settled.has(request) ? 0 : holdAp), 0);
      const [balance, heldAp] = (await balancesOf(pool, id)) as readonly [number, number, number];
      expect([balance, heldAp], `account ${index}`).to.deep.equal([(credits[index] ?? 0) - spent, held]);
    }
  }
});
