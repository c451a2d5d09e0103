/** From a model to a provider that answers: what counts against a route, and what its callers meet meanwhile. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type { Catalogue, ProviderRow, Route } from '../../core/catalogue.ts';
import { type Provider, ProviderError } from '../../workers/providers/provider.ts';
import { makeRoutes, type Routes } from '../../workers/routes.ts';

const MODEL_ID = 'm';
const FAILURES = 5;
const OPEN_MS = 10_000;

/** Providers that are never called over the wire: the work stands in for them. */
function makeTestRoutes(...names: string[]): Routes {
  const rows = names.map(
    (name): ProviderRow => ({
      name,
      kind: name === 'sandbox' ? 'sandbox' : 'openai',
      baseUrl: 'http://127.0.0.1:9',
      credentialEnv: name === 'broken' ? 'EMPTY' : null,
    }),
  );
  const routes = names.map(
    (provider, priority): Route => ({
      provider,
      upstreamModel: 'u',
      priority,
      weight: 1,
    }),
  );
  const catalogue = {
    providers: new Map(rows.map((row) => [row.name, row])),
    models: new Map([[MODEL_ID, { routes }]]),
  } as unknown as Catalogue;
  return makeRoutes(
    { current: () => catalogue, refresh: async () => {}, onChange: () => {}, close: () => {} },
    { EMPTY: '' },
  );
}

const times = { createdAtMs: Date.now(), deadlineAtMs: Date.now() + 600_000 };
const request = { modelId: MODEL_ID, isTest: false, signal: new AbortController().signal, times };
const nameOf = async (provider: Provider): Promise<string> => provider.name;

async function fail(routes: Routes, name: string): Promise<void> {
  for (let call = 0; call < FAILURES; call += 1)
    await routes
      .call(request, async (provider) => {
        if (provider.name === name) throw new ProviderError('misconfigured', 'no');
      })
      .catch(() => {});
}

/** Runs `work` while the clock says that an open circuit may be tried. */
async function whenHalfOpen(work: () => Promise<void>): Promise<void> {
  const { now } = Date;
  Date.now = () => now() + OPEN_MS;
  try {
    await work();
  } finally {
    Date.now = now;
  }
}

describe('routes', () => {
  it('leave a provider alone that keeps failing', async () => {
    const routes = makeTestRoutes('first', 'second');
    await fail(routes, 'first');
    expect(await routes.call(request, nameOf)).to.equal('second');
  });

  it('have no circuit for the sandbox', async () => {
    const routes = makeTestRoutes('sandbox');
    await fail(routes, 'sandbox');
    expect(await routes.call(request, nameOf)).to.equal('sandbox');
    expect(await routes.call({ ...request, isTest: true }, nameOf)).to.equal('sandbox');
  });

  it('go on to the next when a provider cannot be made', async () => {
    expect(await makeTestRoutes('broken', 'second').call(request, nameOf)).to.equal('second');
    const error = await makeTestRoutes('broken')
      .call(request, nameOf)
      .catch((caught: unknown) => caught);
    expect(error).to.be.instanceOf(ProviderError).and.to.include({ kind: 'misconfigured' });
  });

  it('go on to the next, and do not ask again, when a provider was waited for in vain', async () => {
    const asked: string[] = [];
    const isTimeout = true;
    await makeTestRoutes('first', 'second').call(request, async ({ name }) => {
      asked.push(name);
      if (name === 'first') throw new ProviderError('unavailable', 'too slow', { isTimeout });
    });
    expect(asked).to.deep.equal(['first', 'second']);
  });

  it('go on to the next at once while a probe is under way', async () => {
    const routes = makeTestRoutes('first', 'second');
    await fail(routes, 'first');
    await whenHalfOpen(async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const probing = routes.call(request, async (provider) => {
        await promise;
        return provider.name;
      });
      expect(await routes.call(request, nameOf)).to.equal('second');
      resolve();
      expect(await probing).to.equal('first');
      expect(await routes.call(request, nameOf)).to.equal('first');
    });
  });

  it('fail at once while the probe of the only one is under way', async () => {
    const routes = makeTestRoutes('first');
    await fail(routes, 'first');
    await whenHalfOpen(async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const probing = routes.call(request, () => promise);
      const error = await routes.call(request, nameOf).catch((caught: unknown) => caught);
      expect(error).to.be.instanceOf(ProviderError).and.to.include({ kind: 'unavailable' });
      resolve();
      await probing;
    });
  });
});
