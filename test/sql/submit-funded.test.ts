/**
 * The lane of requests that purchased AP pays for: it leaves what submit_requests leaves, leaves alone what it cannot decide,
 * and never lets a balance go below its holds, whoever else submits and settles.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { before, describe, it } from 'mocha';
import type { Pool } from '../../core/database.ts';
import { isPlain, submitFundedRequests, submitRequests } from '../../ingress/data/submissions.ts';
import {
  credit,
  makeAccount,
  makeSubmission,
  selectOne,
  selectRows,
  settle,
  submit,
  waitUntilBlocked,
  withDatabase,
} from '../helpers/database.ts';
import { HOLD_AP, submissionOf } from '../helpers/submissions.ts';

const INPUT = JSON.stringify({
  body: { messages: [{ role: 'user', content: 'a "quoted" \\ word \u00e9' }] },
});

describe('submitting what purchased AP pays for', () => {
  const database = withDatabase();
  before(async () => {
    // the queue engine learns a task's name from its first job
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    await submit(database.pool, [makeSubmission(accountId)]);
  });

  const lane = (submissions: Parameters<typeof isPlain>[0][]) =>
    submitFundedRequests(
      database.pool as Pool,
      submissions.map((submission) => ({ submission, inputJson: INPUT })),
    );
  const acceptedOf = (rows: Awaited<ReturnType<typeof lane>>) => rows.map((row) => row?.outcome ?? 'left');

  const balancesOf = (accountId: string) =>
    selectOne(
      database.pool,
      'select balance_ap, held_ap, purchased_ap from app.balances where account_id = $1',
      [accountId],
    );

  /** All that a submission leaves, but for what differs from one to the next. */
  async function tracesOf(id: string): Promise<unknown> {
    const request = await selectOne(
      database.pool,
      `select to_jsonb(q) - '{id,account_id,key_id,ingress_id,created_at,deadline_at}'::text[] as row,
          q.deadline_at - q.created_at as time_allowed from app.requests q where id = $1`,
      [id],
    );
    const hold = await selectOne(
      database.pool,
      `select h.amount_ap, h.deadline_at - q.created_at as time_allowed
         from app.holds h join app.requests q on q.id = h.request_id where q.id = $1`,
      [id],
    );
    const job = await selectOne<{ payload: Record<string, unknown> }>(
      database.pool,
      `select to_jsonb(j) - '{id,payload,run_at,created_at,updated_at}'::text[] as row, j.payload,
          j.run_at - j.created_at as waits from graphile_worker._private_jobs j where j.payload ->> 'id' = $1`,
      [id],
    );
    const {
      id: _id,
      accountId: _account,
      ingressId: _ingress,
      createdAtMs,
      deadlineAtMs,
      ...payload
    } = job.payload;
    return {
      request,
      hold,
      job: { ...job, payload },
      timeAllowedMs: Number(deadlineAtMs) - Number(createdAtMs),
    };
  }

  it('leaves the rows and the job that submit_requests leaves', async () => {
    const accountId = await makeAccount(database.pool, { purchasedAp: 10_000 });
    const [one, other] = [
      { ...submissionOf(accountId), ingressId: randomUUID() },
      { ...submissionOf(accountId), ingressId: randomUUID() },
    ] as const;
    expect(acceptedOf(await lane([one]))).to.deep.equal(['accepted']);
    await submitRequests(database.pool as Pool, 0, [{ submission: other, inputJson: INPUT }]);
    expect(await tracesOf(one.id)).to.deep.equal(await tracesOf(other.id));
    expect(await balancesOf(accountId)).to.deep.equal({
      balance_ap: 10_000,
      held_ap: 2 * HOLD_AP,
      purchased_ap: 10_000,
    });
  });

  it('tells the queue engine in its own words, and whose jobs they are', async () => {
    const accountId = await makeAccount(database.pool, { purchasedAp: 10_000 });
    const client = await database.pool.connect();
    const heard: string[] = [];
    client.on('notification', ({ payload }) => heard.push(payload ?? ''));
    await client.query('listen "jobs:insert"');
    await lane([submissionOf(accountId), submissionOf(accountId)]);
    await submit(database.pool, [makeSubmission(accountId)]);
    await client.query('select 1');
    await client.query('unlisten *');
    client.release();
    const [{ tasks, ...ours } = {}, theirs] = heard.map(
      (payload) => JSON.parse(payload) as Record<string, unknown>,
    );
    expect(tasks).to.deep.equal([makeSubmission(accountId).task]);
    expect(ours.count).to.equal(2);
    expect(Object.keys(ours)).to.deep.equal(Object.keys(theirs ?? {}));
  });

  for (const [title, makePayer] of [
    ['without a balance', () => makeAccount(database.pool, {})],
    ['with granted AP only', () => makeAccount(database.pool, { grantedAp: 10_000 })],
    [
      'whose purchased AP does not pay for all that it asks',
      () => makeAccount(database.pool, { purchasedAp: 299, grantedAp: 10_000 }),
    ],
  ] as const) {
    it(`leaves an account alone ${title}, and accepts its neighbours`, async () => {
      const [poor, rich] = [await makePayer(), await makeAccount(database.pool, { purchasedAp: 10_000 })];
      const asked = [poor, rich, poor, poor].map((accountId) => submissionOf(accountId));
      expect(acceptedOf(await lane(asked))).to.deep.equal(['left', 'accepted', 'left', 'left']);
      const rows = await selectRows(database.pool, 'select id from app.requests where account_id = $1', [
        poor,
      ]);
      expect(rows).to.have.length(0);
    });
  }

  it('leaves the first request of an account that may have its initial grant to submit_requests', async () => {
    const accountId = await makeAccount(database.pool, { purchasedAp: 10_000 });
    const submission = { ...submissionOf(accountId), isGrantAllowed: true };
    expect(acceptedOf(await lane([submission]))).to.deep.equal(['left']);
    await submitRequests(database.pool as Pool, 500, [{ submission, inputJson: INPUT }]);
    const next = { ...submissionOf(accountId), isGrantAllowed: true };
    expect(acceptedOf(await lane([next]))).to.deep.equal(['accepted']);
  });

  it('leaves everything where the queue engine does not know the task yet', async () => {
    const accountId = await makeAccount(database.pool, { purchasedAp: 10_000 });
    const submission = { ...submissionOf(accountId), task: `never seen ${randomUUID()}` };
    expect(acceptedOf(await lane([submission, submissionOf(accountId)]))).to.deep.equal(['left', 'left']);
    expect(await balancesOf(accountId)).to.deep.equal({
      balance_ap: 10_000,
      held_ap: 0,
      purchased_ap: 10_000,
    });
  });

  it('leaves everything where a balance was spent while it waited for it', async () => {
    const accountId = await makeAccount(database.pool, { purchasedAp: 150 });
    const spender = await database.pool.connect();
    await spender.query('begin');
    await submit(spender, [makeSubmission(accountId, { hold_ap: 100 })]);
    const submission = submissionOf(accountId);
    const answer = lane([submission]);
    await waitUntilBlocked(database.pool, 'submit_funded_requests');
    await spender.query('commit');
    spender.release();
    expect(acceptedOf(await answer)).to.deep.equal(['left']);
    expect(
      await selectRows(database.pool, 'select from app.requests where id = $1', [submission.id]),
    ).to.have.length(0);
    expect(await balancesOf(accountId)).to.deep.equal({ balance_ap: 150, held_ap: 100, purchased_ap: 150 });
  });

  it('keeps the books right beside submitting, settling and crediting of the same accounts', async () => {
    const accounts = await Promise.all(
      [1, 2, 3].map(() => makeAccount(database.pool, { purchasedAp: 1000 })),
    );
    const pick = (index: number): string => accounts[index % accounts.length] as string;
    const work = Array.from({ length: 60 }, async (_, index) => {
      const asked = [0, 1, 2].map((offset) => submissionOf(pick(index + offset)));
      const rows = await lane(asked);
      if (index % 5 === 0) await credit(database.pool, pick(index), 50, 'purchase');
      if (index % 3 === 0) await submit(database.pool, [makeSubmission(pick(index))]);
      const accepted = asked.filter((_submission, position) => rows[position] !== undefined);
      await settle(
        database.pool,
        accepted.map(({ id }) => ({ request_id: id, state: 'succeeded', cost_ap: 7 })),
      );
      return accepted.length;
    });
    const served = (await Promise.all(work)).reduce((sum, count) => sum + count, 0);
    expect(served).to.be.greaterThan(0);
    const charged = await selectOne<{ ap: number }>(
      database.pool,
      `select coalesce(-sum(amount_ap), 0)::bigint as ap from app.ledger_entries where kind = 'charge' and account_id = any ($1)`,
      [accounts],
    );
    expect(charged.ap).to.equal(served * 7);
    const check = await selectOne(database.pool, 'select drift_ap, problems from app.ledger_check()');
    expect(check).to.deep.equal({ drift_ap: 0, problems: [] });
  });

  it('is for requests without caps and idempotency keys', () => {
    const plain = submissionOf(randomUUID());
    expect(isPlain(plain)).to.equal(true);
    for (const cap of ['perRequestAp', 'dailyAp', 'monthlyAp'])
      expect(isPlain({ ...plain, caps: { ...plain.caps, [cap]: 1 } })).to.equal(false);
    expect(isPlain({ ...plain, idempotency: { key: 'k', bodySha256: '00' } })).to.equal(false);
    const free = { fixedMilliAp: 0, unitMilliAp: 0, minUnits: 1, maxUnits: 1 };
    expect(isPlain({ ...plain, quote: free }), 'costs nothing').to.equal(false);
    const huge = { fixedMilliAp: 0, unitMilliAp: Number.MAX_SAFE_INTEGER, minUnits: 1, maxUnits: 2 };
    expect(isPlain({ ...plain, quote: huge })).to.equal(false);
  });
});
