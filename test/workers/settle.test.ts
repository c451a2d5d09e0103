/** Settling together: who shares a call, and that nobody waits for another's locked balance or fails with another's settlement. */
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import type { AssetFile } from '../../core/assets/files.ts';
import { makePool, type Pool } from '../../core/database.ts';
import { makeSettler, type Settlement } from '../../workers/settle.ts';
import { makeAccount, makeSubmission, selectOne, submit, withDatabase } from '../helpers/database.ts';

const LOCK_TIMEOUT_MS = 400;
const SETTLED = { isSettled: true, state: 'succeeded', costAp: 5 };
/** A file that was never begun: the database refuses the settlement that names it. */
const UNKNOWN_FILE: AssetFile = {
  id: '00000000-0000-7000-8000-000000000000',
  kind: 'image',
  position: 0,
  contentType: 'image/png',
  bytes: 1,
  sha256: '00'.repeat(32),
  retentionDays: 1,
  details: {},
};

describe('settling', () => {
  const database = withDatabase();
  let pool: Pool;
  before(async () => {
    pool = await makePool({
      databaseUrl: database.url,
      applicationName: 'svc-test-settle',
      maxConnections: 3,
      lockTimeoutMs: LOCK_TIMEOUT_MS,
      onError: () => {},
    });
  });
  after(() => pool.end());

  const makeRichAccount = () => makeAccount(database.pool, { purchasedAp: 10_000 });

  /** How a new request of the account ends. */
  async function settlementOf(accountId: string, more: Partial<Settlement> = {}): Promise<Settlement> {
    const submission = makeSubmission(accountId);
    await submit(database.pool, [submission]);
    return {
      requestId: submission.id,
      accountId,
      state: 'succeeded',
      costAp: 5,
      startedAt: new Date(),
      inputIsInline: true,
      ...more,
    };
  }

  const stateOf = async ({ requestId }: Settlement) =>
    (
      await selectOne<{ state: string }>(database.pool, 'select state from app.requests where id = $1', [
        requestId,
      ])
    ).state;

  it('lets nobody but the account wait whose balance is locked', async () => {
    const [locked, free] = await Promise.all([makeRichAccount(), makeRichAccount()]);
    const ofLocked = await Promise.all([settlementOf(locked), settlementOf(locked), settlementOf(locked)]);
    const [shared, ...ofFree] = await Promise.all(Array.from({ length: 6 }, () => settlementOf(free)));
    const settler = makeSettler(pool);
    const locker = await database.pool.connect();
    await locker.query('begin');
    await locker.query('select from app.balances where account_id = $1 for update', [locked]);
    let isWaiting = true;
    const waiting = ofLocked.slice(0, 2).map((settlement) => settler.add(settlement));
    void Promise.race(waiting).finally(() => {
      isWaiting = false;
    });
    expect(await settler.add(shared as Settlement)).to.deep.equal(SETTLED); // shared the batch
    const late = settler.add(ofLocked[2] as Settlement);
    const begun = Date.now();
    for (const settlement of ofFree) expect(await settler.add(settlement)).to.deep.equal(SETTLED);
    expect(Date.now() - begun).to.be.below(LOCK_TIMEOUT_MS - 10); // not one of them met the lock
    expect(isWaiting).to.equal(true);
    await locker.query('rollback');
    locker.release();
    expect(await Promise.all([...waiting, late])).to.deep.equal([SETTLED, SETTLED, SETTLED]);
    await settler.drain();
  });

  it('tells the others of a batch that they are settled when one is refused', async () => {
    const account = await makeRichAccount();
    const [good, bad, alsoGood] = await Promise.all([
      settlementOf(account),
      settlementOf(account, { assets: [UNKNOWN_FILE] }),
      settlementOf(account),
    ]);
    const settler = makeSettler(pool);
    const answers = await Promise.allSettled([good, bad, alsoGood].map((one) => settler.add(one)));
    expect(answers.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled']);
    expect(await Promise.all([good, bad, alsoGood].map(stateOf))).to.deep.equal([
      'succeeded',
      'queued',
      'succeeded',
    ]);
    await settler.drain();
  });

  it('bounds a batch by the size of its answers', async () => {
    const batches: number[] = [];
    const settler = makeSettler({
      query: async ({ values }: { values: [string, string[]] }) => {
        const items = JSON.parse(values[0]) as { request_id: string }[];
        batches.push(items.length);
        return {
          rows: items.map(({ request_id }) => ({
            request_id,
            is_settled: true,
            state: 'succeeded',
            cost_ap: 5,
          })),
        };
      },
    } as unknown as Pool);
    const settlement = (index: number, length: number): Settlement => ({
      requestId: `request ${index}`,
      accountId: 'account',
      state: 'succeeded',
      costAp: 5,
      startedAt: new Date(),
      inputIsInline: true,
      result: { kind: 'json', body: 'x'.repeat(length) },
    });
    const lengths = [10, 1_500_000, 1_500_000, 1_500_000, 9_000_000, 10, 10];
    await Promise.all(lengths.map((length, index) => settler.add(settlement(index, length))));
    expect(batches).to.deep.equal([3, 1, 1, 2]);
  });
});
