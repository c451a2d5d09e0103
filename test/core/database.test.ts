/** What every pool gives its connections. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makePool } from '../../core/database.ts';
import { makeAccount, selectOne, withDatabase } from '../helpers/database.ts';

describe('a session of a pool', () => {
  const database = withDatabase();

  it('that is left in a transaction is ended after ten seconds, and lets go of its locks', async () => {
    const pool = await makePool({
      databaseUrl: database.url,
      applicationName: 'svc-test-idle',
      maxConnections: 1,
      onError: () => {},
    });
    const accountId = await makeAccount(database.pool, { purchasedAp: 100 });
    const left = await pool.connect();
    const limit = await selectOne(left, 'show idle_in_transaction_session_timeout');
    expect(limit).to.deep.equal({ idle_in_transaction_session_timeout: '10s' });

    await left.query(`begin; set local idle_in_transaction_session_timeout = '50ms'`);
    await left.query('select from app.balances where account_id = $1 for update', [accountId]);
    await database.pool.query('update app.balances set purchased_ap = 0 where account_id = $1', [accountId]);
    const next: unknown = await left.query('commit').catch((error: unknown) => error);
    expect(next).to.be.instanceOf(Error);
    left.release(true);
    await pool.query('select');
    await pool.end();
  });
});
