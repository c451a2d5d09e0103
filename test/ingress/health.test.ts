/** /health/stats: the heavy query runs once for all who ask at a time. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type { Context } from '../../ingress/context.ts';
import { getHealthStats } from '../../ingress/routes/health.ts';
import type { Services } from '../../ingress/services.ts';

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
