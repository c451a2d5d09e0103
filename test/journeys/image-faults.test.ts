/** Images whose provider misbehaves, whose request is stopped, or whose run is not the first: nothing is charged that is not delivered. */
import { expect } from 'chai';
import { afterEach, before, beforeEach, describe, it } from 'mocha';
import { pino } from 'pino';
import { makeAssetFiles } from '../../core/assets/files.ts';
import { inspectPicture } from '../../core/pictures.ts';
import { sweepAssets } from '../../workers/tasks/maintenance/assets.ts';
import { makeKey } from '../helpers/database.ts';
import { makeImageModel } from '../helpers/image-models.ts';
import type { MockBehaviour } from '../helpers/mock-upstream-wire.ts';
import { makePng } from '../helpers/pictures.ts';
import { type Answer, eventually, makeGate, type TestCaller, withTestService } from '../helpers/service.ts';

const silent = pino({ level: 'silent' });
const MODEL = 'image-mocked';
const PATH = '/v1/images/generations';
const BODY = { model: MODEL, prompt: 'a lighthouse', size: '64x64', quality: 'low' };

describe('images when things go wrong', () => {
  const service = withTestService();
  let caller: TestCaller;

  before('a model of the mock', () => makeImageModel(service, { id: MODEL, provider: 'mock' }));
  beforeEach(async () => {
    caller = await service.makeCaller({});
  });
  afterEach(() => service.upstream.reset());

  const generate = (changes: object = {}, headers: Record<string, string> = {}) =>
    service.post(PATH, { secret: caller.secret, body: { ...BODY, ...changes }, headers });
  async function storedAssets(): Promise<number> {
    const { rows } = await service.pool.query(
      `select from app.assets where account_id = $1 and state = 'stored'`,
      [caller.accountId],
    );
    return rows.length;
  }

  const faults: readonly [string, MockBehaviour][] = [
    ['of another size', { images: { size: '32x32' } }],
    ['that is no picture', { images: { b64: Buffer.from('hello').toString('base64') } }],
    ['cut short', { images: { b64: makePng(64, 64).subarray(0, 80).toString('base64') } }],
    ['without bytes', { images: { b64: '' } }],
  ];
  for (const [what, behaviour] of faults) {
    it(`a picture ${what} is not sold: 503, and nothing is charged or kept`, async () => {
      service.upstream.programNext(behaviour);
      const answer = await generate();
      expect(answer.status).to.equal(503);
      expect(answer.json.error.code).to.equal('generation_failed');
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
      expect(await storedAssets()).to.equal(0);
    });
  }

  it('the provider is asked for what was paid for, and gets the caller’s pictures byte for byte', async () => {
    const photo = makePng(20, 30, { rgb: [9, 8, 7] });
    const { status } = await service.post('/v1/images/edits', {
      secret: caller.secret,
      body: { ...BODY, image: photo.toString('base64'), n: 2, seed: 7, user: 'u-1' },
    });
    expect(status).to.equal(200);
    const [call] = service.upstream.calls;
    expect(call?.path).to.equal('/v1/images/edits');
    expect(call?.body).to.include({
      prompt: 'a lighthouse',
      size: '64x64',
      quality: 'low',
      n: '2',
      user: 'u-1',
    });
    expect(call?.files?.map(({ bytes }) => bytes.equals(photo))).to.deep.equal([true]);
  });

  it('a test key gets pictures of the sandbox, which a live key of the account is never given', async () => {
    const { secret } = await makeKey(service.pool, caller.accountId, { prefix: 'svc_test_' });
    const tried = await service.post(PATH, { secret, body: BODY });
    expect(tried.json).to.include({ cached: false, ap_cost: 10 });
    expect(service.upstream.count()).to.equal(0);
    const live = await generate();
    expect(live.json.cached).to.equal(false);
    expect(live.json.data[0].b64_json).to.not.equal(tried.json.data[0].b64_json);
    expect(service.upstream.count()).to.equal(1);
    expect((await service.post(PATH, { secret, body: BODY })).json.id).to.equal(tried.json.id);
  });

  it('a picture that the provider cannot give in the format asked for is converted', async () => {
    const { json } = await generate({ output_format: 'jpeg' });
    const picture = await inspectPicture(Buffer.from(json.data[0].b64_json, 'base64'));
    expect(picture).to.include({ format: 'jpeg', width: 64, height: 64 });
  });

  it('a prompt that the provider rewrote is told', async () => {
    service.upstream.programNext({ images: { revisedPrompt: 'a tall lighthouse' } });
    const { json } = await generate();
    expect(json.data[0].revised_prompt).to.equal('a tall lighthouse');
    const found = await service.get(`/v1/images/status/${json.id}`, { secret: caller.secret });
    expect(found.json.data[0].revised_prompt).to.equal('a tall lighthouse');
  });

  for (const stream of [false, true]) {
    it(`fewer pictures than asked for are charged as fewer${stream ? ', streamed' : ''}`, async () => {
      service.upstream.programNext({ images: { count: 2 } });
      const { status, text } = await generate({ n: 3, stream, partial_images: stream ? 1 : 0 });
      expect(status).to.equal(200);
      expect(text.match(/"candidate_id"/g)).to.have.length(2);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([20]);
      expect(await storedAssets()).to.equal(2);
    });
  }

  it('a stream that breaks off after a partial picture ends with an error, and nothing is charged', async () => {
    service.upstream.programNext({ cutAfterChunks: 1 });
    const { status, text } = await generate({ stream: true, partial_images: 2 });
    expect(status).to.equal(200);
    const events = text.split('\n\n').filter(Boolean);
    expect(events).to.have.length(2);
    expect(events[0]).to.match(/^event: image_generation\.partial_image\n/);
    expect(events[1]).to.match(/^data: \{"error":\{"code":"generation_failed"/);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
    expect(await storedAssets()).to.equal(0);
  });

  for (const stream of [false, true]) {
    it(`one that is cancelled is free${stream ? ', streamed' : ''}`, async () => {
      const gate = makeGate();
      service.upstream.programNext({ gate: gate.passed });
      const answered = generate({ stream });
      await service.upstream.waitForCall();
      const { json: list } = await service.get('/v1/requests', { secret: caller.secret });
      const { id } = list.data[0];
      const cancelled = await service.post(`/v1/requests/${id}/cancel`, { secret: caller.secret });
      expect(cancelled.json).to.include({ status: 'cancelled', ap_cost: 0 });
      expect((await answered).json?.error?.code ?? (await answered).text).to.include('generation_failed');
      const found = await service.get(`/v1/images/status/${id}`, { secret: caller.secret });
      expect(found.json.status).to.equal('cancelled');
      gate.open();
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
    });
  }

  for (const { cut, what, costAp, kept } of [
    { cut: 1, what: 'a partial picture was shown is charged for that picture', costAp: 10, kept: 0 },
    { cut: 3, what: 'the second began is charged for both, and keeps the finished one', costAp: 20, kept: 1 },
  ]) {
    it(`a stream of two that is cancelled when ${what}`, async () => {
      const gate = makeGate();
      service.upstream.programNext({ chunkGate: async (written) => written < cut || (await gate.passed) });
      const response = await fetch(`${service.urls[0]}${PATH}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${caller.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...BODY, n: 2, stream: true, partial_images: 1 }),
      });
      const id = response.headers.get('x-svc-image-id');
      const shown = cut === 1 ? 1 : 2;
      let text = '';
      let cancelled: Promise<Answer> | undefined;
      for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        text += part;
        if (text.match(/^event: image_generation\.partial_image$/gm)?.length === shown)
          cancelled ??= service.post(`/v1/requests/${id}/cancel`, { secret: caller.secret });
      }
      gate.open();
      expect((await cancelled)?.json).to.include({ status: 'cancelled', ap_cost: costAp });
      expect(text).to.not.include('completed');
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([costAp]);
      expect(await storedAssets()).to.equal(kept);
      const { json } = await service.get(`/v1/images/${id}`, { secret: caller.secret });
      expect(json).to.include({ status: 'cancelled', ap_cost: costAp });
      expect(json.data).to.have.length(kept);
    });
  }

  it('what a run before left is never shown, and swept', async () => {
    const { pool, store } = service;
    const files = makeAssetFiles({ pool, store, retentionDays: 30, logger: silent });
    const gate = makeGate();
    service.upstream.programNext({ gate: gate.passed });
    const accepted = await generate({ n: 2 }, { prefer: 'respond-async' });
    const { id } = accepted.json;
    await service.upstream.waitForCall();
    // a worker that died after it had put its pictures
    const left = await files.put(
      { accountId: caller.accountId, requestId: id },
      [0, 1].map((position) => ({
        kind: 'image',
        position,
        contentType: 'image/png',
        body: makePng(64, 64),
        maxBytes: 10_000,
      })),
    );
    gate.open();
    const found = await eventually(async () => {
      const answer = await service.get(`/v1/images/${id}`, { secret: caller.secret });
      expect(answer.json.status).to.equal('succeeded');
      return answer.json;
    });
    expect(found.data).to.have.length(2);
    for (const { id: candidate } of left) {
      expect(found.data.map((one: { candidate_id: string }) => one.candidate_id)).to.not.include(candidate);
      const file = await service.get(`/v1/images/file/${candidate}`, { secret: caller.secret });
      expect(file.status).to.equal(404);
    }
    await pool.query(`update app.assets set sweep_at = now() where state = 'writing' and request_id = $1`, [
      id,
    ]);
    await sweepAssets({ pool, store, logger: silent });
    const { rows } = await pool.query('select from app.assets where request_id = $1', [id]);
    expect(rows).to.have.length(2);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([20]);
  });

  it('a store that is full fails them unbilled, before and behind the provider', async () => {
    const { store } = service;
    const put = store.put.bind(store);
    try {
      store.put = () => Promise.reject(new Error('no space left on device'));
      const photo = makePng(8, 8).toString('base64');
      const edit = { secret: caller.secret, body: { ...BODY, image: photo } };
      for (const answer of [await generate(), await service.post('/v1/images/edits', edit)]) {
        expect(answer.status).to.equal(503);
        expect(answer.json.error.code).to.equal('generation_failed');
        expect(answer.headers.get('retry-after')).to.match(/^\d+$/);
      }
    } finally {
      store.put = put;
    }
    expect(service.takeErrors()).to.have.length(2);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
    const { rows } = await service.pool.query('select from app.assets where account_id = $1', [
      caller.accountId,
    ]);
    expect(rows).to.have.length(0);
  });

  it('a cached picture that is lost from the store is made anew, and its address is 410', async () => {
    const { json } = await generate();
    const { rows } = await service.pool.query<{ day: string }>(
      `select to_char(created_at at time zone 'utc', 'YYYY/MM/DD') as day from app.assets where id = $1`,
      [json.data[0].candidate_id],
    );
    await service.store.delete([`image/${rows[0]?.day}/${json.data[0].candidate_id}.png`]);
    const again = await generate();
    expect(again.json).to.include({ cached: false, ap_cost: 10 });
    const file = await service.get(`/v1/images/file/${json.id}`, { secret: caller.secret });
    expect(file.status).to.equal(410);
    const collected = await service.get(`/v1/images/status/${json.id}`, { secret: caller.secret });
    expect(collected.status).to.equal(410);
    expect(service.takeErrors(), 'each of the two is told to the operator').to.have.length(3);
    expect((await generate()).json).to.include({ id: again.json.id, cached: true });
  });
});
