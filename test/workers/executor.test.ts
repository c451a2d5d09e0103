/** How often a request is run: again when its worker was stopped, and once more when its worker died. */
import { expect } from 'chai';
import type { JobHelpers } from 'graphile-worker';
import { describe, it } from 'mocha';
import { pino } from 'pino';
import { v7 } from 'uuid';
import { makeLocalBus } from '../../core/relay/bus.ts';
import { makeActiveRuns } from '../../workers/active-runs.ts';
import { makePaidTask } from '../../workers/executor.ts';
import { makeSettler } from '../../workers/settle.ts';
import { makeAccount, makeSubmission, selectOne, submit, withDatabase } from '../helpers/database.ts';
import { payloadOf } from '../helpers/submissions.ts';

describe('a request that comes from the queue again', () => {
  const database = withDatabase();

  /** The state it ends in. */
  async function stateAfter(job: Pick<JobHelpers['job'], 'attempts' | 'last_error'>): Promise<string> {
    const { pool } = database;
    const accountId = await makeAccount(pool, { grantedAp: 1000 });
    const submission = makeSubmission(accountId);
    await submit(pool, [submission]);
    const [workerId, bus, logger] = [v7(), makeLocalBus(), pino({ level: 'silent' })];
    const active = await makeActiveRuns({ workerId, bus, pool, logger });
    const run = makePaidTask<object>(
      {
        name: 'test/run',
        mayRepeat: () => true,
        perform: async () => ({ kind: 'succeeded', costAp: 1, usage: {}, provider: 'test', body: '{}' }),
      },
      {
        config: { streamWindowBytes: 1024, slowReaderSeconds: 30 },
        workerId,
        pool,
        bus,
        logger,
        settler: makeSettler(pool),
        active,
        assets: { discardInputs: async () => {} },
      },
    );
    const payload = payloadOf({ id: submission.id, accountId });
    await run(payload, { job: { ...job, created_at: new Date() } } as JobHelpers);
    active.close();
    const { state } = await selectOne<{ state: string }>(
      pool,
      'select state from app.requests where id = $1',
      [submission.id],
    );
    return state;
  }

  it('is run again when its worker died, and not when the next one died as well', async () => {
    expect(await stateAfter({ attempts: 2, last_error: null })).to.equal('succeeded');
    expect(await stateAfter({ attempts: 3, last_error: null })).to.equal('failed');
  });

  it('is run three times where workers were stopped', async () => {
    const stopped = { last_error: 'the worker is stopping' };
    expect(await stateAfter({ attempts: 3, ...stopped })).to.equal('succeeded');
    expect(await stateAfter({ attempts: 4, ...stopped })).to.equal('failed');
  });
});
