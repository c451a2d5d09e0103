/** Submitting together: who shares a call, who waits for whom, and that nothing on the books is told to have failed. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { isConnectionError, makePool, type Pool } from '../../core/database.ts';
import type { Submission } from '../../ingress/data/submissions.ts';
import { makeSubmit } from '../../ingress/submit.ts';
import { makeAccount, selectOne, withDatabase } from '../helpers/database.ts';
import { HOLD_AP, submissionOf } from '../helpers/submissions.ts';

type Query = (statement: { name: string; text: string; values: unknown[] }) => Promise<{ rows: unknown[] }>;
const poolOf = (query: Query): Pool => ({ query }) as unknown as Pool;
const ACCEPTED = { outcome: 'accepted', holdAp: HOLD_AP };
const inputsOf = (values: unknown[]): string[] => JSON.parse(values[1] as string) as string[];
const acceptAll = (values: unknown[]) => ({
  rows: inputsOf(values).map(() => ({ outcome: 'accepted', hold_ap: HOLD_AP })),
});

describe('submitting', () => {
  const database = withDatabase();
  let pool: Pool;
  before(async () => {
    pool = await makePool({
      databaseUrl: database.url,
      applicationName: 'svc-test-submit',
      maxConnections: 3,
      lockTimeoutMs: 200,
      onError: () => {},
    });
  });
  after(() => pool.end());

  const makeRichAccount = () => makeAccount(database.pool, { purchasedAp: 10_000 });

  /** The request is on the books once. */
  async function expectOnce({ id }: Submission): Promise<void> {
    const { requests, holds } = await selectOne<{ requests: number; holds: number }>(
      database.pool,
      `select (select count(*) from app.requests where id = $1) as requests,
        (select count(*) from app.holds where request_id = $1) as holds`,
      [id],
    );
    expect({ requests, holds }).to.deep.equal({ requests: 1, holds: 1 });
  }

  it('does not let small requests wait for large inputs, and bounds a batch by its bytes', async () => {
    const { promise: largeMayGo, resolve: release } = Promise.withResolvers<void>();
    const batches: number[][] = [];
    const submit = makeSubmit(
      poolOf(async ({ values }) => {
        const lengths = inputsOf(values).map((input) => input.length);
        batches.push(lengths);
        if (lengths.some((length) => length > 65_536)) await largeMayGo;
        return acceptAll(values);
      }),
      0,
    );
    const accountId = randomUUID();
    const lengths = [400_000, 400_000, 400_000, 3_000_000, 100_000];
    const large = lengths.map((length) => submit(submissionOf(accountId, 'x'.repeat(length))));
    expect(await submit(submissionOf(accountId, 'small'))).to.deep.equal(ACCEPTED);
    release();
    await Promise.all(large);
    expect(batches.filter(([first]) => first !== 5)).to.deep.equal([
      [400_000, 400_000],
      [400_000],
      [3_000_000],
      [100_000],
    ]);
    batches.length = 0;
    await Promise.all(Array.from({ length: 30 }, () => submit(submissionOf(accountId, 'x'.repeat(60_000)))));
    expect(batches.map((batch) => batch.length)).to.deep.equal([17, 13]);
  });

  it('lets nobody but the account wait whose balance is locked', async () => {
    const [locked, free] = await Promise.all([makeRichAccount(), makeRichAccount()]);
    const submit = makeSubmit(pool, 0);
    const locker = await database.pool.connect();
    await locker.query('begin');
    await locker.query('select from app.balances where account_id = $1 for update', [locked]);
    const waiting = [submissionOf(locked), submissionOf(locked)] as const;
    let isWaiting = true;
    const first = submit(waiting[0]).finally(() => {
      isWaiting = false;
    });
    expect(await submit(submissionOf(free))).to.deep.equal(ACCEPTED); // shared the batch
    const second = submit(waiting[1]);
    const begun = Date.now();
    for (let index = 0; index < 5; index += 1) await submit(submissionOf(free));
    expect(Date.now() - begun).to.be.below(190); // not one of them met the lock
    expect(isWaiting).to.equal(true);
    await locker.query('rollback');
    locker.release();
    expect(await Promise.all([first, second])).to.deep.equal([ACCEPTED, ACCEPTED]);
    for (const submission of waiting) await expectOnce(submission);
    await submit.drain();
  });

  it('gives up on a balance that stays locked', async () => {
    const timeout = Object.assign(new Error('lock timeout'), { code: '55P03' });
    const { now } = Date;
    let tries = 0;
    const submit = makeSubmit(
      poolOf(async () => {
        tries += 1;
        if (tries === 3) Date.now = () => now() + 6000;
        throw timeout;
      }),
      0,
    );
    try {
      const error = await submit(submissionOf(randomUUID())).catch((caught: unknown) => caught);
      expect(error).to.include({ code: 'generation_failed', status: 503, retryAfterSeconds: 2 });
      expect(tries).to.equal(3);
    } finally {
      Date.now = now;
    }
  });

  /** Submits with a pool whose first submission is committed, and then ends with `error`. */
  async function submitAndLose(error: Error): Promise<void> {
    let isFirst = true;
    const submit = makeSubmit(
      poolOf(async (statement) => {
        const answer = await pool.query(statement);
        if (!isFirst) return answer;
        isFirst = false;
        throw error;
      }),
      0,
    );
    const submissions = [submissionOf(await makeRichAccount()), submissionOf(await makeRichAccount())];
    expect(await Promise.all(submissions.map(submit))).to.deep.equal([ACCEPTED, ACCEPTED]);
    for (const submission of submissions) await expectOnce(submission);
  }

  it('finds on the books what was committed when the driver cannot read the answer', async () => {
    await submitAndLose(new RangeError('an integer from the database is beyond 2^53'));
  });

  it('finds on the books what was committed when the connection breaks', async () => {
    await submitAndLose(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' }));
    await submitAndLose(Object.assign(new Error('write EPIPE'), { code: 'EPIPE', syscall: 'write' }));
  });

  it('finds on the books what was sent after all', async () => {
    await submitAndLose(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }));
  });

  it('takes a statement that ran out of time for an answer of the database', async () => {
    const client = await pool.connect();
    await client.query('set statement_timeout = 20');
    const error = await client.query('select pg_sleep(5)').catch((caught: unknown) => caught);
    client.release(true);
    expect(error).to.include({ code: '57014' });
    expect(isConnectionError(error)).to.equal(false);
  });
});
