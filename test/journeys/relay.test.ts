/** What carries answers from workers to ingresses may fail: frames are lost on purpose, Redis dies; the answers arrive all the same. */
import { expect } from 'chai';
import { after, afterEach, before, describe, it } from 'mocha';
import OpenAI from 'openai';
import type { Bus } from '../../core/relay/bus.ts';
import type { Frame } from '../../core/relay/frames.ts';
import { startRedis, type TestRedis } from '../helpers/redis.ts';
import {
  DEFAULT_COST_AP,
  eventually,
  MODEL,
  makeGate,
  startTestService,
  type TestService,
  withTestService,
} from '../helpers/service.ts';
import { makeClient } from './openai-client.ts';
import { contentOf, openStream } from './streams.ts';

const WORDS = Array.from({ length: 60 }, (_, index) => `word-${index} `);

/** A bus that loses what `isLost` says; what it lost is counted. */
function makeLossyBus() {
  const state = { isLost: (_frame: Frame): boolean => false, lost: 0 };
  const wrap = (bus: Bus): Bus => ({
    publish(channel, frame) {
      if (state.isLost(frame)) state.lost += 1;
      else bus.publish(channel, frame);
    },
    subscribe: (channel, handler) => bus.subscribe(channel, handler),
    get isConnected() {
      return bus.isConnected;
    },
    onGap: (listener) => bus.onGap(listener),
    close: () => bus.close(),
  });
  return { state, wrap };
}

describe('lost frames', () => {
  const { state, wrap } = makeLossyBus();
  const service = withTestService({
    wrapBus: wrap,
    // comments would wake a reader that must wake by itself
    config: { streamCommentSeconds: 60, slowReaderSeconds: 8 },
  });
  afterEach(() => {
    state.isLost = () => false;
    state.lost = 0;
    service.upstream.reset();
  });

  /** Numbers the frames of a kind as they are sent. */
  const nth = (kind: Frame['kind'], isLost: (index: number) => boolean) => {
    let index = -1;
    return (frame: Frame) => {
      if (frame.kind !== kind) return false;
      index += 1;
      return isLost(index);
    };
  };

  const cases: readonly (readonly [string, () => (frame: Frame) => boolean])[] = [
    ['the first', () => nth('events', (index) => index === 0)],
    ['one in the middle', () => nth('events', (index) => index === 30)],
    ['every third', () => nth('events', (index) => index % 3 === 2)],
    ['all but the first', () => nth('events', (index) => index > 0)],
    ['all', () => nth('events', () => true)],
    ['the last of all', () => nth('finished', () => true)],
    ['everything', () => (frame) => frame.kind === 'events' || frame.kind === 'finished'],
  ];
  for (const [name, makeLoss] of cases) {
    it(`of a stream (${name}) leave neither hole nor repeat`, async () => {
      const caller = await service.makeCaller();
      service.upstream.programNext({ chunks: WORDS });
      state.isLost = makeLoss();
      const answer = await service.chat(caller, { stream: true, stream_options: { include_usage: true } });
      expect(state.lost).to.be.above(0);
      expect(contentOf(answer.text)).to.equal(WORDS.join(''));
      expect(answer.text.match(/"ap_cost"/g)).to.have.lengthOf(1);
      expect(answer.text.match(/"finish_reason":"stop"/g)).to.have.lengthOf(1);
      expect(answer.text.endsWith('data: [DONE]\n\n')).to.equal(true);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
    });
  }

  it('of a stream far larger than its window do not hold it up', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({
      firehoseBytes: 4 * service.config.streamWindowBytes,
      chunks: ['the end'],
    });
    state.isLost = nth('events', (index) => index === 3);
    const stream = await openStream(service, caller, { max_tokens: 4096 });
    await stream.readAll();
    expect(state.lost).to.equal(1);
    expect(stream.content.replace(/x+/, '')).to.equal('the end');
    expect(stream.content.length % 16_000).to.equal('the end'.length);
  });

  it('that acknowledge what was read are said again', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({
      firehoseBytes: 4 * service.config.streamWindowBytes,
      chunks: ['the end'],
    });
    // nothing is heard of the reader until the window is full and the worker waits
    state.isLost = nth('taken', (index) => index < 4);
    const stream = await openStream(service, caller, { max_tokens: 4096 });
    await stream.readAll();
    expect(state.lost).to.be.above(0);
    expect(stream.content.endsWith('the end')).to.equal(true);
  });

  it('that say that the client left are said again', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ chunks: ['one ', 'two ', 'three'], hang: 2 });
    state.isLost = nth('abort', (index) => index === 0);
    const stream = await openStream(service, caller);
    await stream.readUntil('two ');
    stream.leave();
    await service.upstream.waitForAbort();
    expect(state.lost).to.equal(1);
    await eventually(async () => expect(await service.chargesOf(caller.accountId)).to.have.lengthOf(1));
  });

  it('that cancel a running stream are said again, and what was produced is paid however late they are heard', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ chunks: ['one ', 'two ', 'three'], hang: 2 });
    const stream = await openStream(service, caller);
    await stream.readUntil('two ');
    const lostUntil = Date.now() + 3000;
    state.isLost = (frame) => frame.kind === 'abort' && Date.now() < lostUntil;
    const cancelled = await service.post(`/v1/requests/${stream.id}/cancel`, caller);
    expect(state.lost).to.be.above(1);
    expect(cancelled.json).to.include({ status: 'cancelled', ap_cost: 14, held_ap: 0 });
    await stream.readAll();
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([14]);
  }).timeout(15_000);

  it('that cancel a running stream and are never heard leave it running, held and to be settled by its worker', async () => {
    const caller = await service.makeCaller();
    const gate = makeGate();
    service.upstream.programNext({ chunks: ['one ', 'two'], chunkGate: () => gate.passed });
    const stream = await openStream(service, caller);
    await stream.readUntil('one ');
    state.isLost = (frame) => frame.kind === 'abort';
    const { status, json } = await service.post(`/v1/requests/${stream.id}/cancel`, caller);
    expect([status, json.status, json.ap_cost]).to.deep.equal([200, 'running', null]);
    expect(json.held_ap).to.be.above(0);
    gate.open();
    await stream.readAll();
    expect(stream.content).to.equal('one two');
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
  }).timeout(20_000);

  it('that carry a whole answer, or a failure, are made good', async () => {
    const caller = await service.makeCaller();
    state.isLost = (frame) => frame.kind === 'finished';
    service.upstream.programNext({}, { status: 400, error: { code: 'content_filter' } });
    const answer = await service.chat(caller);
    expect([answer.status, answer.headers.get('x-svc-ap-cost')]).to.deep.equal([
      200,
      String(DEFAULT_COST_AP),
    ]);
    expect(answer.json.choices[0].message.content).to.equal('Hello from the mock.');
    const refused = await service.chat(caller);
    expect([refused.status, refused.json.error.code]).to.deep.equal([422, 'content_moderated']);
    expect(state.lost).to.equal(2);
  });

  it('by chance, one in four of every kind, hurt none of many requests at once', async () => {
    const caller = await service.makeCaller();
    // a small generator of our own, so that a failure can be repeated
    let seed = 20_261_120;
    state.isLost = () => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
      return seed % 4 === 0;
    };
    service.upstream.program(MODEL, { chunks: WORDS });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => service.chat(caller, { stream: index % 2 === 0 })),
    );
    for (const answer of answers) {
      expect(answer.status).to.equal(200);
      expect(answer.json?.choices[0].message.content ?? contentOf(answer.text)).to.equal(WORDS.join(''));
    }
    expect(await service.chargesOf(caller.accountId)).to.deep.equal(Array<number>(40).fill(DEFAULT_COST_AP));
  });
});

describe('with Redis', () => {
  let redis: TestRedis | undefined;
  let service: TestService;
  before(async function () {
    this.timeout(30_000);
    redis = await startRedis();
    if (redis === undefined) return this.skip();
    service = await startTestService({
      redisUrl: redis.url,
      webs: 2,
      workers: 2,
      config: { slowReaderSeconds: 20 },
    });
    return undefined;
  });
  afterEach(() => service?.upstream.reset());
  after(async function () {
    this.timeout(30_000);
    await service?.ledgerIsClean();
    await service?.stop();
    await redis?.stop();
    expect(service?.takeErrors() ?? []).to.deep.equal([]);
  });

  it('two ingresses answer for two workers, and know each other’s requests', async () => {
    const caller = await service.makeCaller();
    const ids: string[] = [];
    for (const web of [0, 1]) {
      const answer = await service.chat(caller, {}, { web });
      expect(answer.status).to.equal(200);
      ids.push(answer.headers.get('x-svc-request-id') ?? '');
    }
    for (const [index, id] of ids.entries()) {
      expect((await service.get(`/v1/requests/${id}`, { ...caller, web: 1 - index })).json.status).to.equal(
        'succeeded',
      );
    }
  });

  it('two ingresses count the rate of a key together', async () => {
    const { secret } = await service.makeCaller({ ratePerMinute: 10 });
    const statuses: number[] = [];
    for (let index = 0; index < 14; index += 1) {
      statuses.push((await service.get('/v1/key', { secret, web: index % 2 })).status);
    }
    expect(statuses).to.deep.equal([...Array<number>(10).fill(200), ...Array<number>(4).fill(429)]);
  });

  it('a request is cancelled through another ingress, a stream too', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ chunks: ['one ', 'two ', 'three'], hang: 2 });
    const stream = await openStream(service, caller, {}, 0);
    await stream.readUntil('two ');
    const cancelled = await service.post(`/v1/requests/${stream.id}/cancel`, { ...caller, web: 1 });
    expect(cancelled.json).to.include({ status: 'cancelled', ap_cost: 14 });
    await stream.readAll();
    expect(stream.text).to.match(/data: \{"error":\{"code":"generation_failed"/);
  });

  it('a stream arrives as it is made', async () => {
    const caller = await service.makeCaller();
    const gates = [makeGate(), makeGate(), makeGate()];
    service.upstream.programNext({
      chunks: ['a', 'b', 'c'],
      chunkGate: (index) => gates[index]?.passed ?? Promise.resolve(),
    });
    let seen = '';
    for await (const chunk of await makeClient(service, caller, 1).chat.completions.create({
      model: MODEL,
      messages: [{ role: 'user', content: 'Hello' }],
      stream: true,
    })) {
      seen += chunk.choices[0]?.delta.content ?? '';
      gates[seen.length]?.open();
    }
    expect(seen).to.equal('abc');
  });

  describe('that dies', () => {
    afterEach(async () => {
      // the next test finds it as the first one did
      await redis?.restart();
      await eventually(async () => {
        for (const url of service.urls)
          expect(await (await fetch(`${url}/health`)).json()).to.include({ relay: 'ok' });
      }, 10_000);
    });

    it('while a whole answer is made, the answer arrives', async () => {
      const caller = await service.makeCaller();
      const gate = makeGate();
      service.upstream.programNext({ gate: gate.passed });
      const answering = service.chat(caller);
      await service.upstream.waitForCall();
      await redis?.kill();
      gate.open();
      const answer = await answering;
      expect(answer.status).to.equal(200);
      expect(answer.json.choices[0].message.content).to.equal('Hello from the mock.');
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
    });

    it('in the middle of a stream, the rest arrives, however much it is', async () => {
      const caller = await service.makeCaller();
      const gate = makeGate();
      const rest = 'x'.repeat(20_000);
      const chunks = ['one ', 'two ', ...Array<string>(30).fill(rest), ' the end'];
      service.upstream.programNext({
        chunks,
        chunkGate: (index) => (index === 2 ? gate.passed : Promise.resolve()),
      });
      const stream = await openStream(service, caller, { max_tokens: 4096 });
      await stream.readUntil('two ');
      await redis?.kill();
      gate.open();
      await stream.readAll();
      expect(stream.content === chunks.join('')).to.equal(true);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
    }).timeout(20_000);

    it('new requests are taken, limited, answered and cancelled without it, and it is used again once it is back', async () => {
      await redis?.kill();
      const caller = await service.makeCaller({ ratePerMinute: 5 });
      for (let index = 0; index < 2; index += 1) {
        const answer = await service.chat(caller);
        expect([answer.status, answer.headers.get('ratelimit-policy')]).to.deep.equal([
          200,
          '"default";q=5;w=60',
        ]);
      }
      const health = await service.get('/health');
      expect([health.status, health.json.relay]).to.deep.equal([200, 'degraded']);
      const patient = await service.makeCaller();
      service.upstream.programNext({ hang: 'before-headers' });
      const leave = new AbortController();
      const leaving = service.chat(patient, {}, { signal: leave.signal }).catch(() => undefined);
      await eventually(() => expect(service.upstream.count()).to.equal(3));
      const call = service.upstream.calls.at(-1);
      leave.abort();
      await leaving;
      await call?.aborted;
      expect(await service.chargesOf(patient.accountId)).to.deep.equal([]);
      await redis?.restart();
      await eventually(async () => expect((await service.get('/health')).json.relay).to.equal('ok'), 10_000);
      const gate = makeGate();
      service.upstream.programNext({ chunks: ['one ', 'two'], chunkGate: () => gate.passed });
      const stream = await openStream(service, patient);
      await stream.readUntil('one ');
      gate.open();
      await stream.readAll();
      expect(stream.content).to.equal('one two');
    }).timeout(20_000);

    it('the official client notices nothing', async () => {
      await redis?.kill();
      const client = makeClient(service, await service.makeCaller());
      expect(client).to.be.instanceOf(OpenAI);
      const stream = client.chat.completions.stream({
        model: MODEL,
        messages: [{ role: 'user', content: 'Hello' }],
      });
      expect((await stream.finalChatCompletion()).choices[0]?.message.content).to.equal(
        'Hello from the mock.',
      );
    });
  });
});
