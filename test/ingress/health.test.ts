/** /health/stats: the heavy query runs once for all who ask at a time. /health: what it says of the asset store. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { pino } from 'pino';
import type { Logger } from '../../core/logger.ts';
import type { Context } from '../../ingress/context.ts';
import { getHealthStats } from '../../ingress/routes/health.ts';
import type { Services } from '../../ingress/services.ts';
import { makeStorageHealth } from '../../ingress/storage-health.ts';
import { eventually, withTestService } from '../helpers/service.ts';

describe('/health/stats', () => {
  it('reads the figures once for all who ask meanwhile, and again after a failure', async () => {
    let reads = 0;
    let isBroken = true;
    const pool = {
      query: async () => {
        reads += 1;
        await new Promise((resolve) => setImmediate(resolve));
        if (isBroken) throw new Error('no database');
        return { rows: [{ requests: 7 }] };
      },
    };
    const handler = getHealthStats({ pool, load: { depth: 0, workers: 1 } } as unknown as Services);
    const ask = async () => {
      const ctx = { headers: {}, set: () => {}, body: undefined as unknown };
      await handler(ctx as unknown as Context);
      return ctx.body;
    };
    const failed = await Promise.allSettled([ask(), ask()]);
    expect(failed.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    expect(reads).to.equal(1);
    isBroken = false;
    const bodies = await Promise.all([ask(), ask(), ask()]);
    for (const body of bodies) expect(body).to.include('"requests":7');
    await ask();
    expect(reads).to.equal(2);
  });
});

describe('/health while files cannot be kept', () => {
  const service = withTestService({ config: { assetStore: 'file:///dev/null/assets' } });

  it('says so, and is down only where something is offered that needs them', async () => {
    const chatOnly = await service.get('/health');
    expect([chatOnly.status, chatOnly.json.status, chatOnly.json.storage, chatOnly.json.llm]).to.deep.equal([
      200,
      'ok',
      'down',
      'ok',
    ]);
    await service.pool.query(`insert into app.models (id, type) values ('image-test', 'image')`);
    await eventually(async () => {
      const { status, json } = await service.get('/health');
      expect([status, json.status, json.storage, json.llm]).to.deep.equal([503, 'down', 'down', 'ok']);
    });
  });
});

describe('the state of the asset store', () => {
  const { logger, lines } = loggerOf();

  it('is looked at once for all who ask, and is down when there is no answer', async () => {
    let looks = 0;
    const isUp = makeStorageHealth(
      {
        check: () => {
          looks += 1;
          return new Promise<void>(() => {});
        },
      },
      logger,
    );
    expect(await Promise.all([isUp(), isUp(), isUp()])).to.deep.equal([false, false, false]);
    expect(looks).to.equal(1);
    expect(lines).to.have.length(1);
  });
});

function loggerOf(): { readonly logger: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  return { logger: pino({ level: 'warn' }, { write: (line) => lines.push(line) }), lines };
}
