/** Looking requests up in the database, while others of them cannot be voided. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { pino } from 'pino';
import type { Pool } from '../../core/database.ts';
import { makeLocalBus } from '../../core/relay/bus.ts';
import { processChannel } from '../../core/relay/frames.ts';
import type { FinishedRequest } from '../../ingress/data/requests.ts';
import { makeRelay } from '../../ingress/relay.ts';

const INGRESS = 'an ingress';
const LOCK_TIMEOUT = Object.assign(new Error('lock timeout'), { code: '55P03' });

type Query = (statement: { values: [readonly string[]] }) => Promise<{ rows: unknown[] }>;
const poolOf = (query: Query): Pool => ({ query }) as unknown as Pool;

/** Two requests whose streams are run again after some of them was heard, and one whose end was lost. */
async function makeTwiceRun(balances: Query) {
  const bus = makeLocalBus();
  const relay = await makeRelay({
    ingressId: INGRESS,
    bus,
    pool: poolOf(async ({ values: [ids] }) => ({
      rows: ids
        .filter((id) => id === 'lost')
        .map(
          (id): FinishedRequest => ({
            id,
            state: 'failed',
            costAp: 0,
            errorCode: null,
            errorDetails: null,
            result: null,
          }),
        ),
    })),
    balancesPool: poolOf(balances),
    logger: pino({ level: 'silent' }),
  });
  const lost = relay.expect('lost');
  for (const id of ['locked', 'free']) {
    relay.expect(id);
    for (const run of [1, 2]) {
      bus.publish(processChannel(INGRESS), {
        kind: 'events',
        id,
        workerId: 'w',
        run,
        first: 0,
        events: ['{}'],
      });
    }
  }
  return { relay, lost };
}

describe('requests that are waited for', () => {
  it('are looked up while others cannot be voided', async () => {
    const { relay, lost } = await makeTwiceRun(() => new Promise(() => {}));
    expect(await lost.finished).to.include({ id: 'lost', state: 'failed' });
    relay.close();
  });

  it('are voided each by itself where the balance of one stays locked', async () => {
    const isVoided = Promise.withResolvers<void>();
    const { relay } = await makeTwiceRun(async ({ values: [ids] }) => {
      if (ids.includes('locked')) throw LOCK_TIMEOUT;
      if (ids.includes('free')) isVoided.resolve();
      return { rows: [] };
    });
    await isVoided.promise;
    relay.close();
  });
});
