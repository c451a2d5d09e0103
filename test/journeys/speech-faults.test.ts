/**
 * Speech that is heard while it is made, and what can happen meanwhile: frames that are lost, callers that leave or do not listen,
 * providers that break off, a Redis that dies. What a caller has heard to its end is on the books, and nothing else is.
 */
import { expect } from 'chai';
import { after, afterEach, before, beforeEach, describe, it } from 'mocha';
import type { Bus } from '../../core/relay/bus.ts';
import type { Frame } from '../../core/relay/frames.ts';
import { numberedMp3 } from '../helpers/audio.ts';
import type { MockBehaviour } from '../helpers/mock-upstream-wire.ts';
import { startRedis, type TestRedis } from '../helpers/redis.ts';
import {
  eventually,
  makeGate,
  startTestService,
  type TestCaller,
  type TestService,
  withTestService,
} from '../helpers/service.ts';
import { MOCKED_VOICE, makeSpeechModels } from '../helpers/speech-models.ts';
import { openSpeech } from './speech-stream.ts';

/** Of "Hello", at 200 AP per 1,000 characters. */
const COST_AP = 1;
const PARTS = Array.from({ length: 12 }, (_, index) => numberedMp3(20, index * 20));
const WHOLE = Buffer.concat(PARTS);
/** Longer than the window between worker and ingress. */
const LONG_PARTS = Array.from({ length: 60 }, (_, index) => numberedMp3(60, index * 60));
const LONG = Buffer.concat(LONG_PARTS);

const audio = (pieces: readonly Buffer[], changes: MockBehaviour = {}): MockBehaviour => ({
  audio: { pieces },
  ...changes,
});

const outcomeOf = async (reading: Promise<unknown>): Promise<string> => {
  try {
    await reading;
    return 'complete';
  } catch {
    return 'cut';
  }
};

async function speechesOf(service: TestService, accountId: string): Promise<string[]> {
  const { rows } = await service.pool.query<{ state: string }>(
    `select state from app.assets where account_id = $1 and kind = 'audio' order by id`,
    [accountId],
  );
  return rows.map(({ state }) => state);
}

describe('speech while it is made', () => {
  const lossy = { isLost: (_frame: Frame): boolean => false, lost: 0 };
  const service = withTestService({
    config: { slowReaderSeconds: 4, streamWindowBytes: 64 * 1024 },
    wrapBus: (bus: Bus): Bus => ({
      ...bus,
      get isConnected() {
        return bus.isConnected;
      },
      publish(channel, frame) {
        if (lossy.isLost(frame)) lossy.lost += 1;
        else bus.publish(channel, frame);
      },
    }),
  });
  let caller: TestCaller;

  before('models that speak', () => makeSpeechModels(service));
  beforeEach(async () => {
    caller = await service.makeCaller();
  });
  afterEach(() => {
    service.upstream.reset();
    lossy.isLost = () => false;
    lossy.lost = 0;
  });

  const charges = () => service.chargesOf(caller.accountId);
  const isSettled = () => eventually(async () => expect(await charges()).to.deep.equal([COST_AP]));
  const isVoided = (id: string, code: string) =>
    eventually(async () => {
      const { json } = await service.get(`/v1/requests/${id}`, caller);
      expect([json.status, json.error_code, json.ap_cost]).to.deep.equal(['failed', code, 0]);
      expect(await service.balanceOf(caller.accountId)).to.include({ heldAp: 0 });
    });
  const fileOf = async (id: string): Promise<Buffer> => {
    const response = await fetch(`${service.urls[0]}/v1/audio/file/${id}`, {
      headers: { authorization: `Bearer ${caller.secret}` },
    });
    expect(response.status).to.equal(200);
    return Buffer.from(await response.arrayBuffer());
  };

  it('is heard long before its end, and its end only once it is paid', async () => {
    const gates = PARTS.map(() => makeGate());
    gates[0]?.open();
    service.upstream.programNext(audio(PARTS, { chunkGate: async (index) => gates[index]?.passed }));
    const speech = await openSpeech(service, caller);
    expect([
      speech.status,
      speech.headers['content-type'],
      speech.headers['transfer-encoding'],
    ]).to.deep.equal([200, 'audio/mpeg', 'chunked']);
    expect(speech.headers).to.include({
      'x-svc-ap-cost': String(COST_AP),
      'x-svc-voice': MOCKED_VOICE,
      'x-svc-cached': 'false',
    });
    const length = PARTS[0]?.length ?? 0;
    for (const [index, gate] of gates.entries()) {
      gate.open();
      // all that is there but the little that stays behind
      await speech.readUntil((index + 1) * length - 512);
      if (index + 1 < gates.length) expect(await charges()).to.deep.equal([]);
    }
    expect((await speech.readAll()).equals(WHOLE)).to.equal(true);
    expect(await charges()).to.deep.equal([COST_AP]);
  });

  const nth = (kind: Frame['kind'], isLost: (index: number) => boolean) => {
    let index = -1;
    return (frame: Frame) => {
      if (frame.kind !== kind) return false;
      index += 1;
      return isLost(index);
    };
  };
  const losses: readonly (readonly [string, () => (frame: Frame) => boolean])[] = [
    ['the first', () => nth('events', (index) => index === 0)],
    ['one in the middle', () => nth('events', (index) => index === 1)],
    ['every third', () => nth('events', (index) => index % 3 === 2)],
    ['all but the first', () => nth('events', (index) => index > 0)],
    ['all', () => nth('events', () => true)],
    ['the last of all', () => nth('finished', () => true)],
    ['everything', () => (frame) => frame.kind === 'events' || frame.kind === 'finished'],
  ];
  for (const [name, makeLoss] of losses) {
    it(`is whole although frames were lost: ${name}`, async () => {
      service.upstream.programNext(audio(PARTS));
      lossy.isLost = makeLoss();
      const speech = await openSpeech(service, caller);
      expect((await speech.readAll()).equals(WHOLE)).to.equal(true);
      expect(lossy.lost).to.be.above(0);
      expect(await charges()).to.deep.equal([COST_AP]);
    });
  }

  it('is whole although acknowledgements were lost while more than a window was on its way', async () => {
    service.upstream.programNext(audio(LONG_PARTS));
    lossy.isLost = nth('taken', (index) => index < 3);
    const speech = await openSpeech(service, caller);
    expect((await speech.readAll()).equals(LONG)).to.equal(true);
    expect(lossy.lost).to.be.above(0);
    expect(await charges()).to.deep.equal([COST_AP]);
  });

  it('by a provider that breaks off in the middle is cut off, costs nothing and is not kept', async () => {
    service.upstream.programNext(audio(PARTS, { reset: PARTS.length }));
    const speech = await openSpeech(service, caller);
    expect(speech.status).to.equal(200);
    expect(await outcomeOf(speech.readAll())).to.equal('cut');
    expect(speech.bytes.length).to.be.below(WHOLE.length);
    await isVoided(speech.id, 'generation_failed');
    expect(await charges()).to.deep.equal([]);
    expect(await speechesOf(service, caller.accountId)).to.not.include('stored');
    expect(service.upstream.calls, 'nothing is tried again behind what was heard').to.have.length(1);
  });

  it('by a provider that fails before the first sound is tried again, and refused with a proper status', async () => {
    service.upstream.programNext({ status: 503 }, audio(PARTS));
    const speech = await openSpeech(service, caller);
    expect((await speech.readAll()).equals(WHOLE)).to.equal(true);
    expect(service.upstream.calls).to.have.length(2);
    service.upstream.programNext({ status: 503 }, { status: 503 });
    const refused = await openSpeech(service, caller, { input: 'Goodbye' });
    expect(refused.status).to.equal(503);
    expect(JSON.parse((await refused.readAll()).toString()).error.code).to.equal('generation_failed');
    expect(refused.headers).to.not.have.property('x-svc-ap-cost');
    expect(await charges()).to.deep.equal([COST_AP]);
  });

  it('that cannot be kept is cut off or refused, costs nothing, and its provider is let go', async () => {
    const { store } = service;
    const put = store.put.bind(store);
    store.put = () => Promise.reject(new Error('the disk is full'));
    try {
      service.upstream.programNext(audio(PARTS, { hang: PARTS.length }));
      const status = await openSpeech(service, caller).then(
        async (speech) => `${speech.status} ${await outcomeOf(speech.readAll())}`,
        () => 'cut',
      );
      expect(status).to.match(/^(503 complete|200 cut|cut)$/);
      await service.upstream.calls[0]?.aborted;
    } finally {
      store.put = put;
    }
    expect(await charges()).to.deep.equal([]);
    expect(service.takeErrors().join()).to.include('the asset store failed');
  });

  it('whose caller leaves in the middle is finished, paid once, and can be fetched', async () => {
    const gate = makeGate();
    service.upstream.programNext(audio(LONG_PARTS, { chunkGate: () => gate.passed }));
    const speech = await openSpeech(service, caller);
    await speech.readUntil(1000);
    speech.leave();
    gate.open();
    await isSettled();
    const { json } = await service.get(`/v1/requests/${speech.id}`, caller);
    expect(json.result).to.include({
      object: 'audio',
      content_type: 'audio/mpeg',
      bytes: LONG.length,
      url: `${service.urls[0]}/v1/audio/file/${speech.id}`,
    });
    expect((await fileOf(speech.id)).equals(LONG)).to.equal(true);
  });

  it('whose caller leaves is finished although the word of it was lost', async () => {
    const gate = makeGate();
    service.upstream.programNext(audio(LONG_PARTS, { chunkGate: () => gate.passed }));
    lossy.isLost = nth('taken', (index) => index < 3);
    const speech = await openSpeech(service, caller);
    await speech.readUntil(1000);
    speech.leave();
    gate.open();
    await isSettled();
    expect((await fileOf(speech.id)).equals(LONG)).to.equal(true);
  });

  it('is made at its provider’s pace although its caller listens slowly, and is heard whole', async () => {
    service.upstream.programNext(audio(Array<Buffer>(12).fill(LONG)));
    const speech = await openSpeech(service, caller);
    await isSettled(); // nobody has read a byte
    const all = await speech.readAll();
    expect(all.length).to.equal(12 * LONG.length);
    expect(all.subarray(0, LONG.length).equals(LONG)).to.equal(true);
  }).timeout(20_000);

  it('that is cancelled is cut off, stops its provider, and is charged, since it was heard', async () => {
    service.upstream.programNext(audio(PARTS, { hang: PARTS.length }));
    const speech = await openSpeech(service, caller);
    await speech.readUntil(1000);
    const { json } = await service.post(`/v1/requests/${speech.id}/cancel`, caller);
    expect(json).to.include({ status: 'cancelled', ap_cost: COST_AP });
    expect(await outcomeOf(speech.readAll())).to.equal('cut');
    await service.upstream.calls[0]?.aborted;
    expect(await charges()).to.deep.equal([COST_AP]);
  });

  it('that is cancelled before anything was heard costs nothing', async () => {
    service.upstream.programNext(audio(PARTS, { hang: 0 }));
    const accepted = await service.post('/v1/audio/speech', {
      ...caller,
      body: { input: 'Never mind', voice: MOCKED_VOICE },
      headers: { prefer: 'respond-async' },
    });
    const call = await service.upstream.waitForCall();
    const { json } = await service.post(`/v1/requests/${accepted.json.id}/cancel`, caller);
    expect(json).to.include({ status: 'cancelled', ap_cost: 0 });
    await call.aborted;
    expect(await charges()).to.deep.equal([]);
  });

  it('that nobody waits for is made all the same, and repeated requests are free', async () => {
    service.upstream.programNext(audio(PARTS));
    const body = { input: 'Later', voice: MOCKED_VOICE };
    const accepted = await service.post('/v1/audio/speech', {
      ...caller,
      body,
      headers: { prefer: 'respond-async' },
    });
    expect(accepted.status).to.equal(202);
    expect(accepted.headers.get('location')).to.equal(`/v1/requests/${accepted.json.id}`);
    await isSettled();
    expect((await fileOf(accepted.json.id)).equals(WHOLE)).to.equal(true);
    const again = await openSpeech(service, caller, body);
    expect(again.headers).to.include({ 'x-svc-cached': 'true', 'x-svc-ap-cost': '0' });
    expect((await again.readAll()).equals(WHOLE)).to.equal(true);
    expect(service.upstream.calls).to.have.length(1);
    expect(await charges()).to.deep.equal([COST_AP]);
  });
});

describe('speech that takes longer than the edge allows', () => {
  const service = withTestService({ config: { edgeWaitSeconds: 1 } });
  before('models that speak', () => makeSpeechModels(service));

  it('to begin is answered with where to collect it', async () => {
    const caller = await service.makeCaller();
    const gate = makeGate();
    service.upstream.programNext(audio(LONG_PARTS, { gate: gate.passed }));
    const answer = await service.post('/v1/audio/speech', {
      ...caller,
      body: { input: 'Hello', voice: MOCKED_VOICE },
    });
    expect(answer.status).to.equal(202);
    gate.open();
    await eventually(async () => {
      const { json } = await service.get(`/v1/requests/${answer.json.id}`, caller);
      expect(json).to.include({ status: 'succeeded', ap_cost: COST_AP });
      expect(json.result.bytes).to.equal(LONG.length);
    });
  });
});

describe('speech over Redis', () => {
  let redis: TestRedis | undefined;
  let service: TestService;
  before(async function () {
    this.timeout(30_000);
    redis = await startRedis();
    if (redis === undefined) return this.skip();
    service = await startTestService({ redisUrl: redis.url, webs: 2, workers: 2 });
    await makeSpeechModels(service);
    return undefined;
  });
  after(async function () {
    this.timeout(30_000);
    await service?.ledgerIsClean();
    await service?.stop();
    await redis?.stop();
    expect(service?.takeErrors() ?? []).to.deep.equal([]);
  });

  it('is whole although Redis dies in its middle', async () => {
    const caller = await service.makeCaller();
    const gate = makeGate();
    service.upstream.programNext(
      audio(LONG_PARTS, { chunkGate: async (index) => (index === 2 ? gate.passed : undefined) }),
    );
    const speech = await openSpeech(service, caller, {}, 1);
    await speech.readUntil(20_000);
    await redis?.kill();
    gate.open();
    expect((await speech.readAll()).equals(LONG)).to.equal(true);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([COST_AP]);
    await redis?.restart();
  }).timeout(20_000);
});
