/** What a circuit learns of answers, whatever they are of: that they begin, and that they came whole. */
import { expect } from 'chai';
import { after, afterEach, before, describe, it } from 'mocha';
import type { Catalogue, ProviderRow } from '../../core/catalogue.ts';
import { HTTP_LIMITS } from '../../workers/providers/http-exchange.ts';
import { type Provider, ProviderError } from '../../workers/providers/provider.ts';
import { makeRoutes, type Routes } from '../../workers/routes.ts';
import { RunAborted } from '../../workers/run.ts';
import { collected, inPieces } from '../helpers/audio.ts';
import { type MockUpstream, startMockUpstream } from '../helpers/mock-upstream.ts';
import { makeGate } from '../helpers/service.ts';
import { collect, contentOf } from './providers/conformance.ts';
import { imageCall } from './providers/conformance-images.ts';
import { speechCall } from './providers/conformance-speech.ts';
import { transcriptionCall } from './providers/conformance-transcription.ts';

/** Consecutive failures that open a route's circuit. */
const FAILURES = 5;
const times = { createdAtMs: Date.now(), deadlineAtMs: Date.now() + 600_000 };
const request = { modelId: 'm', isTest: false, signal: new AbortController().signal, times };
const call = imageCall({ partialImages: 1 });
const chatCall = {
  ...request,
  requestId: 'r',
  upstreamModel: 'u',
  body: { messages: [{ role: 'user', content: 'Hello' }] },
  outputCapTokens: 50,
};

function catalogueOf(row: ProviderRow) {
  return {
    providers: new Map([['only', row]]),
    models: new Map([['m', { routes: [{ provider: 'only', upstreamModel: 'u', priority: 0, weight: 1 }] }]]),
  };
}

function routesOf(catalogue: object): Routes {
  return makeRoutes(
    {
      current: () => catalogue as unknown as Catalogue,
      refresh: async () => {},
      onChange: () => {},
      close: () => {},
    },
    {},
  );
}

describe('the circuit of a route for pictures and speech', () => {
  let upstream: MockUpstream;
  let routes: Routes;

  before(async () => {
    upstream = await startMockUpstream();
  });
  afterEach(async () => {
    upstream.reset();
    await routes.close();
  });
  after(() => upstream.close());

  function makeTestRoutes(): Routes {
    return routesOf(
      catalogueOf({ name: 'only', kind: 'openai', baseUrl: upstream.baseUrl, credentialEnv: null }),
    );
  }

  async function isOpenAfter(work: (provider: Provider) => Promise<void>): Promise<boolean> {
    routes = makeTestRoutes();
    for (let time = 0; time < FAILURES; time += 1) await routes.call(request, work).catch(() => {});
    let wasCalled = false;
    await routes
      .call(request, async () => {
        wasCalled = true;
      })
      .catch(() => {});
    return !wasCalled;
  }

  const disliked = () => {
    throw new ProviderError('invalid_response', 'the pictures are not what was asked for');
  };

  it('opens when no answer comes', async () => {
    upstream.program('u', { rawBody: '{}' });
    expect(
      await isOpenAfter(async ({ image }) => {
        await image?.produce(call);
      }),
    ).to.equal(true);
  });

  it('stays closed when answers come whole and only what is in them is at fault', async () => {
    expect(
      await isOpenAfter(async ({ image }) => {
        await image?.produce(call);
        disliked();
      }),
    ).to.equal(false);
  });

  it('stops a probe from holding others back once a stream begins', async () => {
    routes = makeTestRoutes();
    upstream.program('u', { status: 500 });
    for (let time = 0; time < FAILURES; time += 1)
      await routes.call(request, async ({ image }) => void (await image?.produce(call))).catch(() => {});
    upstream.reset();
    const { now } = Date;
    Date.now = () => now() + 11_000;
    try {
      await routes.call(request, async ({ image }) => {
        const events = image?.stream(call)[Symbol.asyncIterator]();
        expect((await events?.next())?.done).to.equal(false);
        // The probe is not over, and another call is let through.
        expect(await routes.call(request, async (provider) => provider.name)).to.equal('only');
        await events?.return?.();
      });
    } finally {
      Date.now = now;
    }
  });

  it('opens for an only provider that is silent until the deadline, but for none that was asked just before it', async () => {
    upstream.program('u', { hang: 'before-headers' });
    for (const [waitedMs, isOpen] of [
      [0, true],
      [60_000, false],
    ] as const) {
      routes = makeTestRoutes();
      for (let time = 0; time < FAILURES; time += 1) {
        const deadline = new AbortController();
        const times = { createdAtMs: Date.now() - waitedMs, deadlineAtMs: Date.now() + 20 };
        setTimeout(() => deadline.abort(new RunAborted('deadline')), 20);
        await routes
          .call({ ...request, times, signal: deadline.signal }, async ({ image }) => {
            await image?.produce({ ...call, signal: deadline.signal });
          })
          .catch(() => {});
      }
      const error = await routes.call(request, async () => {}).catch((caught: unknown) => caught);
      expect(error instanceof ProviderError, `waited ${waitedMs} ms`).to.equal(isOpen);
      await routes.close();
    }
  });

  it('lets calls under way finish when the row of their provider changes', async () => {
    const graceMs = HTTP_LIMITS.closeGraceMs;
    Object.assign(HTTP_LIMITS, { closeGraceMs: 0 }); // what a shutdown gives them
    try {
      const row = { name: 'only', kind: 'openai', baseUrl: upstream.baseUrl, credentialEnv: null };
      const catalogue = catalogueOf(row);
      routes = routesOf(catalogue);
      const isChanged = makeGate();
      upstream.programNext({ content: 'Hello you', chunkGate: () => isChanged.passed });
      const chat = async (provider: Provider) => {
        if (provider.chat === undefined) throw new Error('no chat');
        return contentOf(await collect(provider.chat.stream(chatCall)), 0);
      };
      const underWay = routes.call(request, chat);
      await upstream.waitForCall();
      catalogue.providers.set('only', { ...row, baseUrl: `${upstream.baseUrl}/` });
      expect(await routes.call(request, chat)).to.equal('Hello from the mock.');
      isChanged.open();
      expect(await underWay).to.equal('Hello you');
    } finally {
      Object.assign(HTTP_LIMITS, { closeGraceMs: graceMs });
    }
  });

  const kinds: [string, (provider: Provider) => Promise<void>][] = [
    [
      'speech',
      async ({ speech }) =>
        void (await collected(speech?.speak(speechCall()) ?? inPieces(Buffer.alloc(0), 1))),
    ],
    [
      'transcription',
      async ({ transcription }) =>
        void (await transcription?.transcribe(transcriptionCall(Buffer.from('ID3')))),
    ],
  ];
  for (const [what, work] of kinds) {
    it(`opens when no ${what} comes`, async () => {
      upstream.program('u', { rawBody: '{}' });
      expect(await isOpenAfter(work)).to.equal(true);
    });

    it(`stays closed when ${what} comes whole and only what is in it is at fault`, async () => {
      const isOpen = await isOpenAfter(async (provider) => {
        await work(provider);
        disliked();
      });
      expect(isOpen).to.equal(false);
    });
  }
});
