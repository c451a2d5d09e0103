/**
 * What submitting and settling leave in the tables: request, hold, job, input, result, entries, notifications; and nothing
 * at all where a request was refused.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import pg from 'pg';
import { v7 } from 'uuid';
import {
  credit,
  makeAccount,
  makeSubmission,
  type Queryable,
  selectOne,
  selectRows,
  settle,
  submit,
  waitUntilBlocked,
  withDatabase,
} from '../helpers/database.ts';

interface JobRow {
  readonly task_identifier: string;
  readonly max_attempts: number;
  readonly payload: Readonly<Record<string, unknown>>;
}

const MAX_INLINE_INPUT_BYTES = 65_536;

describe('submitting', () => {
  const database = withDatabase();

  /** Jobs of these requests. Payloads are parsed here: `->>` fails on a payload with a NUL in any of its strings. */
  async function jobsOf(requestIds: readonly string[]): Promise<JobRow[]> {
    const rows = await selectRows<{ task_identifier: string; max_attempts: number; payload: string }>(
      database.pool,
      `select t.identifier as task_identifier, j.max_attempts, j.payload::text
         from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id order by j.id`,
    );
    return rows
      .map((row) => ({ ...row, payload: JSON.parse(row.payload) as JobRow['payload'] }))
      .filter((row) => requestIds.includes(String(row.payload.id)));
  }

  async function jobOf(requestId: string): Promise<JobRow | undefined> {
    const jobs = await jobsOf([requestId]);
    expect(jobs.length, 'jobs of one request').to.be.at.most(1);
    return jobs[0];
  }

  async function inputOf(requestId: string): Promise<string | undefined> {
    const rows = await selectRows<{ body: string }>(
      database.pool,
      'select body from app.request_inputs where request_id = $1',
      [requestId],
    );
    return rows[0]?.body;
  }

  it('writes the request, its hold and its job', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const submission = makeSubmission(accountId, {
      ingress_id: randomUUID(),
      is_stream: true,
      price_id: 7,
      timeout_seconds: 60,
      fixed_milli_ap: 1000,
      unit_milli_ap: 100,
      max_units: 30,
    });
    await submit(database.pool, [submission], { inputs: [{ body: { messages: [] } }] });

    const request = await selectOne(database.pool, 'select * from app.requests where id = $1', [
      submission.id,
    ]);
    expect(request).to.deep.include({
      account_id: accountId,
      key_id: submission.key_id,
      area: 'llm',
      task: 'chat/completions',
      model_id: 'chat-test',
      price_id: 7,
      state: 'queued',
      is_stream: true,
      hold_ap: 4,
      cost_ap: null,
      ingress_id: submission.ingress_id,
      started_at: null,
      finished_at: null,
      capped_scopes: null,
    });
    const seconds = (later: Date, earlier: Date) => (later.getTime() - earlier.getTime()) / 1000;
    expect(seconds(request.deadline_at, request.created_at)).to.equal(60);

    const hold = await selectOne(database.pool, 'select * from app.holds where request_id = $1', [
      submission.id,
    ]);
    expect(hold).to.deep.include({ account_id: accountId, amount_ap: 4 });
    // its worker has 30 s after the deadline to settle
    expect(seconds(hold.deadline_at, request.deadline_at)).to.equal(30);

    const job = await jobOf(submission.id);
    expect(job).to.deep.include({ task_identifier: 'chat/completions', max_attempts: 10 });
    const { createdAtMs, deadlineAtMs, ...payload } = job?.payload ?? {};
    expect(createdAtMs).to.be.closeTo(request.created_at.getTime(), 1);
    expect(deadlineAtMs).to.be.closeTo(request.deadline_at.getTime(), 1);
    expect(payload).to.deep.equal({
      id: submission.id,
      accountId,
      modelId: 'chat-test',
      priceId: 7,
      isStream: true,
      ingressId: submission.ingress_id,
      holdAp: 4,
      units: 30,
      input: { body: { messages: [] } },
    });
    expect(await inputOf(submission.id)).to.equal(undefined);
  });

  it('keeps an input of 64 KiB in the job, and puts a larger one beside it until the request is settled', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const [small, large] = [makeSubmission(accountId), makeSubmission(accountId)];
    const [smallInput, largeInput] = [
      'x'.repeat(MAX_INLINE_INPUT_BYTES - 2),
      'x'.repeat(MAX_INLINE_INPUT_BYTES - 1),
    ];
    await submit(database.pool, [small, large], { inputs: [smallInput, largeInput] });

    expect((await jobOf(small.id))?.payload.input).to.equal(smallInput);
    expect(await inputOf(small.id)).to.equal(undefined);
    expect((await jobOf(large.id))?.payload.input).to.equal(null);
    expect(JSON.parse((await inputOf(large.id)) ?? '')).to.equal(largeInput);

    await settle(database.pool, [
      { request_id: large.id, state: 'failed', error_code: 'generation_failed' },
      { request_id: small.id, state: 'succeeded', cost_ap: 1, input_is_inline: true },
    ]);
    expect(await inputOf(large.id)).to.equal(undefined);
  });

  it('counts bytes, not characters, of an input', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const submission = makeSubmission(accountId);
    await submit(database.pool, [submission], { inputs: ['あ'.repeat(MAX_INLINE_INPUT_BYTES / 3)] });
    expect(await inputOf(submission.id)).to.not.equal(undefined);
  });

  it('keeps every input as it is, with characters PostgreSQL has no text for too', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const inputs = ['a\u0000b', '\ud83d\ude00 whole', '\ud800 half', '"\\', { '\u0000': '\u0000' }];
    const submissions = inputs.map(() => makeSubmission(accountId));
    const outcomes = await submit(database.pool, submissions, { inputs });
    expect(outcomes.map((row) => row.outcome)).to.deep.equal(inputs.map(() => 'accepted'));
    const jobs = await jobsOf(submissions.map((submission) => submission.id));
    expect(jobs.map((job) => job.payload.input)).to.deep.equal(inputs);
  });

  it('writes a job exactly where it writes a hold, and answers in the order asked', async () => {
    const accounts = await Promise.all(
      [500, 250, 0].map((grantedAp) => makeAccount(database.pool, { grantedAp })),
    );
    const submissions = Array.from({ length: 30 }, (_, index) => makeSubmission(accounts[index % 3] ?? ''));
    const outcomes = await submit(database.pool, submissions, {
      inputs: submissions.map((_, index) => ({ index })),
    });
    expect(outcomes.map((row) => row.n)).to.deep.equal(submissions.map((_, index) => index + 1));
    const accepted = submissions.filter((_, index) => outcomes[index]?.outcome === 'accepted');
    expect(accepted).to.have.length(5 + 2);
    const [submittedIds, acceptedIds] = [submissions, accepted].map((list) => list.map(({ id }) => id));
    for (const [table, column] of [
      ['app.holds', 'request_id'],
      ['app.requests', 'id'],
    ] as const) {
      const rows = await selectRows<{ id: string }>(
        database.pool,
        `select ${column} as id from ${table} where ${column} = any ($1)`,
        [submittedIds],
      );
      expect(
        rows.map((row) => row.id),
        table,
      ).to.have.members(acceptedIds ?? []);
    }
    expect((await jobsOf(submittedIds ?? [])).map((job) => job.payload.id)).to.have.members(
      acceptedIds ?? [],
    );
    for (const submission of accepted) {
      const job = await jobOf(submission.id);
      expect(job?.payload.input).to.deep.equal({ index: submissions.indexOf(submission) });
    }
  });

  it('takes an empty batch for what it is', async () => {
    expect(await submit(database.pool, [])).to.deep.equal([]);
    expect(await settle(database.pool, [])).to.deep.equal([]);
  });

  it('leaves nothing in any table when it refuses', async () => {
    const body = { idempotency_key: 'key', body_sha256: '11'.repeat(32) };
    const poor = await makeAccount(database.pool);
    const rich = await makeAccount(database.pool, { grantedAp: 1000 });
    const first = makeSubmission(rich, body);
    const finished = makeSubmission(rich, { ...body, idempotency_key: 'finished' });
    await submit(database.pool, [first, finished]);
    await settle(database.pool, [{ request_id: finished.id, state: 'succeeded', cost_ap: 1 }]);

    const refused = [
      ['insufficient_ap', makeSubmission(poor)],
      ['insufficient_ap', makeSubmission(rich, { ...body, idempotency_key: 'refused', hold_ap: 5000 })],
      ['account_too_new', makeSubmission(poor, { is_grant_allowed: false })],
      ['request_over_key_cap', makeSubmission(rich, { cap_per_request_ap: 1 })],
      ['request_over_key_cap', makeSubmission(rich, { cap_daily_ap: 1 })],
      ['request_over_key_cap', makeSubmission(rich, { cap_monthly_ap: 1 })],
      ['user_daily_cap', makeSubmission(rich, { grant_daily_cap_ap: 1 })],
      ['idempotency_in_progress', makeSubmission(rich, body)],
      ['idempotency_conflict', makeSubmission(rich, { ...body, body_sha256: '22'.repeat(32) })],
      ['replay', makeSubmission(rich, { ...body, idempotency_key: 'finished' })],
    ] as const;
    const before = await everything(database.pool);
    for (const [outcome, submission] of refused) {
      const rows = await submit(database.pool, [submission], { inputs: ['x'.repeat(100_000)] });
      expect(rows.map((row) => row.outcome)).to.deep.equal([outcome]);
      expect(await everything(database.pool), outcome).to.deep.equal(before);
    }
    const together = await submit(
      database.pool,
      refused.map(([, submission]) => submission),
    );
    expect(together.map((row) => row.outcome)).to.deep.equal(refused.map(([outcome]) => outcome));
    expect(await everything(database.pool), 'all in one batch').to.deep.equal(before);
  });

  it('gives 30 concurrent first calls one initial grant', async () => {
    const accountId = await makeAccount(database.pool);
    const pool = new pg.Pool({ connectionString: database.url, max: 30 });
    try {
      await Promise.all(Array.from({ length: 30 }, () => pool.query('select pg_sleep(0)'))); // all connected
      const outcomes = await Promise.all(
        Array.from({ length: 30 }, () =>
          submit(pool, [makeSubmission(accountId, { hold_ap: 40 })], { initialGrantAp: 1000 }),
        ),
      );
      expect(outcomes.flat().filter((row) => row.outcome === 'accepted')).to.have.length(25);
      const grants = await selectRows<{ amount_ap: number }>(
        pool,
        `select amount_ap from app.ledger_entries where account_id = $1 and kind = 'initial_grant'`,
        [accountId],
      );
      expect(grants).to.deep.equal([{ amount_ap: 1000 }]);
      const balance = await selectOne(pool, 'select * from app.balances where account_id = $1', [accountId]);
      expect(balance).to.deep.include({ balance_ap: 1000, held_ap: 1000 });
      expect(balance.initial_grant_at).to.be.instanceOf(Date);
    } finally {
      await pool.end();
    }
  });
});

describe('settling', () => {
  const database = withDatabase();

  it('finishes the request, stores its result and removes its hold', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const [done, failed] = [makeSubmission(accountId), makeSubmission(accountId)];
    await submit(database.pool, [done, failed]);
    const startedAt = new Date(Date.now() - 1000);
    await settle(database.pool, [
      {
        request_id: failed.id,
        state: 'failed',
        cost_ap: 0,
        error_code: 'content_moderated',
        // a provider's words may repeat the prompt: they are its caller's, and no row's for good
        error_details: { param: 'messages', provider_message: "'my diary' is not valid" },
        result: '{"error":{}}',
        result_kind: 'json',
      },
      {
        request_id: done.id,
        state: 'succeeded',
        cost_ap: 12,
        usage: { prompt_tokens: 5 },
        provider: 'sandbox',
        started_at: startedAt.toISOString(),
        result: '["half \\ud800","\\u0000"]',
        result_kind: 'events',
      },
    ]);
    const rows = await selectRows(
      database.pool,
      'select * from app.requests where account_id = $1 order by cost_ap',
      [accountId],
    );
    expect(rows[0]).to.deep.include({
      state: 'failed',
      cost_ap: 0,
      error_code: 'content_moderated',
      error_details: { param: 'messages' },
      provider: null,
      started_at: null,
    });
    expect(rows[1]).to.deep.include({
      state: 'succeeded',
      cost_ap: 12,
      usage: { prompt_tokens: 5 },
      provider: 'sandbox',
      error_code: null,
      started_at: startedAt,
    });
    expect(rows[1]?.finished_at).to.be.instanceOf(Date);
    const results = await selectRows(
      database.pool,
      'select * from app.request_results where request_id = any ($1) order by kind',
      [[done.id, failed.id]],
    );
    expect(results).to.deep.equal([
      { request_id: done.id, kind: 'events', body: '["half \\ud800","\\u0000"]' },
      { request_id: failed.id, kind: 'json', body: '{"error":{}}' },
    ]);
    expect(await selectRows(database.pool, 'select * from app.holds')).to.deep.equal([]);
  });

  it('keeps the time at which the request began', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const submission = makeSubmission(accountId);
    await submit(database.pool, [submission]);
    await database.pool.query('select app.mark_running($1)', [[submission.id]]);
    const begun = await selectOne(database.pool, 'select state, started_at from app.requests where id = $1', [
      submission.id,
    ]);
    expect(begun.state).to.equal('running');
    await settle(database.pool, [
      { request_id: submission.id, state: 'succeeded', cost_ap: 1, started_at: new Date(0).toISOString() },
    ]);
    await database.pool.query('select app.mark_running($1)', [[submission.id]]); // late: changes nothing
    const ended = await selectOne(database.pool, 'select state, started_at from app.requests where id = $1', [
      submission.id,
    ]);
    expect(ended).to.deep.equal({ state: 'succeeded', started_at: begun.started_at });
  });

  it('takes a request twice in one batch for one, and passes over one it does not know', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const submission = makeSubmission(accountId);
    await submit(database.pool, [submission]);
    const rows = await settle(database.pool, [
      { request_id: submission.id, state: 'succeeded', cost_ap: 5 },
      { request_id: v7(), state: 'succeeded', cost_ap: 5 },
      { request_id: submission.id, state: 'succeeded', cost_ap: 5 },
    ]);
    expect(rows).to.deep.equal([
      { request_id: submission.id, is_settled: true, state: 'succeeded', cost_ap: 5 },
    ]);
    expect((await submit(database.pool, [makeSubmission(accountId, { hold_ap: 995 })]))[0]?.outcome).to.equal(
      'accepted',
    );
  });

  it('cancels for its own account or an operator, not for another account', async () => {
    const [owner, stranger] = await Promise.all([
      makeAccount(database.pool, { grantedAp: 1000 }),
      makeAccount(database.pool),
    ]);
    const [one, two] = [makeSubmission(owner), makeSubmission(owner)];
    await submit(database.pool, [one, two]);
    const cancelled = async (id: string, account: string | null) =>
      await selectRows(database.pool, 'select state, is_settled from app.cancel_request($1, $2)', [
        id,
        account,
      ]);
    expect(await cancelled(one.id, stranger)).to.deep.equal([]);
    expect(await cancelled(one.id, owner)).to.deep.equal([{ state: 'cancelled', is_settled: true }]);
    expect(await cancelled(two.id, null)).to.deep.equal([{ state: 'cancelled', is_settled: true }]);
    expect(await cancelled(v7(), null)).to.deep.equal([]);
  });

  it('expires the oldest first, as many as it may, and passes over what somebody is ending', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const submissions = Array.from({ length: 5 }, () => makeSubmission(accountId));
    const ids = submissions.map((submission) => submission.id);
    await submit(database.pool, submissions);
    const expired = async (limit: number) => {
      const rows = await selectRows<{ request_id: string }>(
        database.pool,
        'select request_id from app.expire_holds($1) order by request_id',
        [limit],
      );
      return rows.map((row) => ids.indexOf(row.request_id));
    };
    expect(await expired(10), 'none is due').to.deep.equal([]);
    await database.pool.query(
      `update app.holds set deadline_at = now() - interval '1 s' where request_id = any ($1)`,
      [ids.slice(0, 4)],
    );
    const other = await database.pool.connect();
    try {
      await other.query('begin');
      await other.query('select 1 from app.holds where request_id = $1 for update', [ids[0]]);
      expect(await expired(2)).to.deep.equal([1, 2]);
      expect(await expired(2)).to.deep.equal([3]);
      await other.query('rollback');
    } finally {
      other.release();
    }
    expect(await expired(2)).to.deep.equal([0]);
    const rows = await selectRows<{ state: string; error_code: string }>(
      database.pool,
      'select distinct state, error_code from app.requests where id = any ($1)',
      [ids.slice(0, 4)],
    );
    expect(rows).to.deep.equal([{ state: 'expired', error_code: 'generation_failed' }]);
  });

  it('tells a worker which of its requests somebody else ended', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const submissions = Array.from({ length: 3 }, () => makeSubmission(accountId));
    const ids = submissions.map((submission) => submission.id);
    await submit(database.pool, submissions);
    await database.pool.query('select * from app.cancel_request($1, null)', [ids[1]]);
    const rows = await selectRows<{ id: string }>(database.pool, 'select app.lost_holds($1) as id', [ids]);
    expect(rows).to.deep.equal([{ id: ids[1] }]);
  });
});

describe('expiring', () => {
  const database = withDatabase();

  it('ends the holds past their deadline around one that has lost its request', async () => {
    const accountId = await makeAccount(database.pool, { purchasedAp: 1000 });
    const late = Array.from({ length: 3 }, () => makeSubmission(accountId, { timeout_seconds: -40 }));
    await submit(database.pool, late);
    const [first, lost, last] = late.map(({ id }) => id);
    await database.pool.query('delete from app.requests where id = $1', [lost]);
    const ended = await selectRows<{ request_id: string }>(database.pool, 'select * from app.expire_holds()');
    expect(ended.map((row) => row.request_id)).to.have.members([first, last]);
    const held = await selectOne(database.pool, 'select held_ap from app.balances where account_id = $1', [
      accountId,
    ]);
    expect(held).to.deep.equal({ held_ap: 100 });
  });

  it('waits once for an account whose balance stays locked, and ends the holds of the others', async () => {
    const [locked, free] = [
      await makeAccount(database.pool, { purchasedAp: 10_000 }),
      await makeAccount(database.pool, { purchasedAp: 10_000 }),
    ];
    const late = { timeout_seconds: -40 };
    const waiting = Array.from({ length: 12 }, () => makeSubmission(locked, late));
    const due = [makeSubmission(free, late), makeSubmission(free, late)];
    await submit(database.pool, [...waiting, ...due]);
    const other = await database.pool.connect();
    const worker = await database.pool.connect();
    try {
      await other.query('begin');
      await other.query('select from app.balances where account_id = $1 for update', [locked]);
      // for the batch and then for one hold of the account: twice the time of a lock is enough, all twelve would be too long
      await worker.query(`set lock_timeout = '100ms'; set statement_timeout = '1s'`);
      const ended = await selectRows<{ request_id: string }>(worker, 'select * from app.expire_holds()');
      expect(ended.map((row) => row.request_id)).to.have.members(due.map(({ id }) => id));
      await other.query('rollback');
      const rest = await selectRows<{ request_id: string }>(worker, 'select * from app.expire_holds()');
      expect(rest.map((row) => row.request_id)).to.include.members(waiting.map(({ id }) => id));
    } finally {
      other.release(true);
      worker.release(true);
    }
  });
});

describe('notifying', () => {
  const database = withDatabase();

  /** The payloads of `svc_accounts` that `work` sends. */
  async function toldDuring(work: () => Promise<unknown>): Promise<(string | undefined)[]> {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    try {
      const told: (string | undefined)[] = [];
      const end = Promise.withResolvers<void>();
      client.on('notification', ({ payload }) => {
        if (payload === 'end') end.resolve();
        else told.push(payload);
      });
      await client.query('listen svc_accounts');
      await work();
      await database.pool.query(`select pg_notify('svc_accounts', 'end')`);
      await end.promise;
      return told;
    } finally {
      await client.end();
    }
  }

  it('tells the ingresses when the last bought AP is spent, once', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 100, purchasedAp: 10 });
    const submissions = Array.from({ length: 3 }, () => makeSubmission(accountId, { hold_ap: 8 }));
    await submit(database.pool, submissions);
    const spend = (index: number) => () =>
      settle(database.pool, [{ request_id: submissions[index]?.id ?? '', state: 'succeeded', cost_ap: 8 }]);
    expect(await toldDuring(spend(0)), '8 of 10').to.deep.equal([]);
    expect(await toldDuring(spend(1)), '16 of 10').to.deep.equal([accountId]);
    expect(await toldDuring(spend(2)), 'granted AP').to.deep.equal([]);
  });

  it('tells the ingresses when the last bought AP is spent although it was bought a moment before', async () => {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const submission = makeSubmission(accountId, { hold_ap: 100 });
    await submit(database.pool, [submission]);
    const told = await toldDuring(async () => {
      const buyer = await database.pool.connect();
      await buyer.query('begin');
      await credit(buyer, accountId, 50, 'purchase');
      const settling = settle(database.pool, [
        { request_id: submission.id, state: 'succeeded', cost_ap: 60 },
      ]);
      await waitUntilBlocked(database.pool, 'settle_requests');
      await buyer.query('commit');
      buyer.release();
      await settling;
    });
    expect(told, 'of the credit, and of its end').to.deep.equal([accountId, accountId]);
  });

  it('tells the ingresses of a credit and of a refund', async () => {
    const accountId = await makeAccount(database.pool);
    expect(await toldDuring(() => credit(database.pool, accountId, 8, 'grant'))).to.deep.equal([accountId]);
    const submission = makeSubmission(accountId, { hold_ap: 8 });
    await submit(database.pool, [submission]);
    await settle(database.pool, [{ request_id: submission.id, state: 'succeeded', cost_ap: 8 }]);
    expect(
      await toldDuring(() =>
        database.pool.query(`select app.refund_request($1, 8, 'test', 'test')`, [submission.id]),
      ),
    ).to.deep.equal([accountId]);
  });
});

/** A hash of every row of every table, ours and the queue's. */
async function everything(db: Queryable): Promise<Record<string, string>> {
  const tables = await selectRows<{ name: string }>(
    db,
    `select c.oid::regclass::text as name from pg_class c
       where c.relkind in ('r', 'p') and not c.relispartition
         and c.relnamespace in ('app'::regnamespace, 'graphile_worker'::regnamespace)`,
  );
  const hashes: Record<string, string> = {};
  for (const { name } of tables) {
    const { hash } = await selectOne<{ hash: string }>(
      db,
      `select count(*) || ' ' || coalesce(md5(string_agg(t::text, ',' order by t::text)), '') as hash from ${name} t`,
    );
    hashes[name] = hash;
  }
  return hashes;
}
