/** The look before submitting: it says what submitting says, and does nothing. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import {
  makeAccount,
  makeSubmission,
  type Queryable,
  type Submission,
  type SubmitOutcome,
  selectOne,
  submit,
  withDatabase,
  withRollback,
} from '../helpers/database.ts';

type Changes = Partial<Submission> & { readonly hold_ap?: number };

interface Case {
  readonly what: string;
  readonly grantedAp?: number;
  readonly purchasedAp?: number;
  /** Accepted before. */
  readonly before?: Changes;
  readonly changes?: Changes;
  readonly outcome: string;
}

const KEY = { idempotency_key: 'key', body_sha256: '11'.repeat(32) };
const KEY_ID = '01900000-0000-7000-8000-000000000001';

const CASES: readonly Case[] = [
  { what: 'what the balance pays for', grantedAp: 100, outcome: 'accepted' },
  {
    what: 'what is a little more',
    grantedAp: 99,
    changes: { is_grant_allowed: false },
    outcome: 'insufficient_ap',
  },
  {
    what: 'what the balance would pay for, were nothing held',
    grantedAp: 150,
    before: { is_grant_allowed: false },
    changes: { is_grant_allowed: false },
    outcome: 'insufficient_ap',
  },
  {
    what: 'an account without a balance that may have its initial grant',
    outcome: 'accepted',
    changes: { hold_ap: 50 },
  },
  { what: 'one that asks for more than that', outcome: 'insufficient_ap' },
  {
    what: 'an account that is too new for it',
    outcome: 'account_too_new',
    changes: { is_grant_allowed: false },
  },
  {
    what: 'granted AP without a card',
    grantedAp: 500,
    changes: { needs_purchased: true },
    outcome: 'card_required',
  },
  {
    what: 'purchased AP without a card',
    purchasedAp: 500,
    changes: { needs_purchased: true },
    outcome: 'accepted',
  },
  {
    what: 'more than a request may cost',
    purchasedAp: 500,
    changes: { cap_per_request_ap: 99 },
    outcome: 'request_over_key_cap',
  },
  {
    what: 'more than a key may spend a day',
    purchasedAp: 500,
    before: { key_id: KEY_ID, cap_daily_ap: 150 },
    changes: { key_id: KEY_ID, cap_daily_ap: 150 },
    outcome: 'request_over_key_cap',
  },
  {
    what: 'more than a key may spend a month',
    purchasedAp: 500,
    before: { key_id: KEY_ID, cap_monthly_ap: 150 },
    changes: { key_id: KEY_ID, cap_monthly_ap: 150 },
    outcome: 'request_over_key_cap',
  },
  {
    what: 'more granted AP than a day has',
    grantedAp: 500,
    before: { grant_daily_cap_ap: 150 },
    changes: { grant_daily_cap_ap: 150 },
    outcome: 'user_daily_cap',
  },
  {
    what: 'a cap that it keeps within',
    grantedAp: 500,
    changes: { grant_daily_cap_ap: 100 },
    outcome: 'accepted',
  },
  {
    what: 'a cap before the balance',
    grantedAp: 5,
    changes: { cap_per_request_ap: 99 },
    outcome: 'request_over_key_cap',
  },
  { what: 'a key under way', grantedAp: 500, before: KEY, changes: KEY, outcome: 'idempotency_in_progress' },
  {
    what: 'a key of another body',
    grantedAp: 500,
    before: KEY,
    changes: { ...KEY, body_sha256: '22'.repeat(32) },
    outcome: 'idempotency_conflict',
  },
];
const INITIAL_GRANT_AP = 60;

describe('the look before submitting', () => {
  const database = withDatabase();

  async function foresee(db: Queryable, submission: Submission): Promise<SubmitOutcome> {
    return await selectOne<SubmitOutcome & Record<string, unknown>>(
      db,
      `select n, outcome, required_ap, available_ap, held_ap, cap_ap, resets_at, other_request_id
        from app.foresee_submission($1, $2)`,
      [JSON.stringify({ n: 1, ...submission }), INITIAL_GRANT_AP],
    );
  }
  const everything = (db: Queryable) =>
    selectOne(
      db,
      `select (select count(*) from app.requests) as requests, (select count(*) from app.holds) as holds,
          (select count(*) from app.idempotency_keys) as keys, (select count(*) from app.ledger_entries) as entries,
          (select coalesce(sum(used_ap), 0) from app.cap_usage) as used,
          (select json_agg(b order by b.account_id) from app.balances b) as balances`,
    );

  for (const { what, grantedAp, purchasedAp, before, changes, outcome } of CASES) {
    it(`says ${outcome} of ${what}, as submitting does`, () =>
      withRollback(database.pool, async (db) => {
        const accountId = await makeAccount(db, {
          ...(grantedAp === undefined ? {} : { grantedAp }),
          ...(purchasedAp === undefined ? {} : { purchasedAp }),
        });
        if (before !== undefined)
          expect((await submit(db, [makeSubmission(accountId, before)]))[0]?.outcome).to.equal('accepted');
        const submission = makeSubmission(accountId, changes);
        const was = await everything(db);
        const foreseen = await foresee(db, submission);
        expect(await everything(db)).to.deep.equal(was);
        const [decided] = await submit(db, [submission], { initialGrantAp: INITIAL_GRANT_AP });
        expect(foreseen.outcome).to.equal(outcome);
        const { hold_ap: _hold, units: _units, ...said } = decided as SubmitOutcome;
        if (outcome.startsWith('idempotency')) {
          expect(foreseen.other_request_id).to.equal(said.other_request_id);
          expect(said.outcome).to.equal(outcome);
        } else expect(foreseen).to.deep.equal(said);
      }));
  }
});
