/** The same question again, when the store is unwell or an Idempotency-Key is involved: nobody pays twice, and no key means two things. */
import { expect } from 'chai';
import { afterEach, before, beforeEach, describe, it } from 'mocha';
import { IMAGE_MODEL, makeImageModel } from '../helpers/image-models.ts';
import { type TestCaller, withTestService } from '../helpers/service.ts';

describe('images found in the cache', () => {
  const service = withTestService();
  let caller: TestCaller;
  let open: typeof service.store.open;

  before('a model of the sandbox', async () => {
    await makeImageModel(service, { id: IMAGE_MODEL, provider: 'sandbox' });
    open = service.store.open.bind(service.store);
  });
  beforeEach(async () => {
    caller = await service.makeCaller({ ratePerMinute: 1000 });
  });
  afterEach(() => {
    service.store.open = open;
  });

  const generate = (prompt: string, key?: string, changes: object = {}) =>
    service.post('/v1/images/generations', {
      secret: caller.secret,
      body: {
        model: IMAGE_MODEL,
        prompt,
        size: '64x64',
        quality: 'low',
        response_format: 'url',
        ...changes,
      },
      ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
    });

  it('are not made and paid for again because the store cannot be read just now: 503', async () => {
    const first = await generate('a hiccup');
    service.store.open = () => Promise.reject(new Error('SlowDown'));
    const refused = await generate('a hiccup');
    expect([refused.status, refused.json.error.code]).to.deep.equal([503, 'generation_failed']);
    expect(refused.headers.get('retry-after')).to.match(/^\d+$/);
    service.store.open = open;
    expect((await generate('a hiccup')).json).to.include({ id: first.json.id, cached: true, ap_cost: 0 });
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([10]);
    expect(service.takeErrors()).to.have.length(1);
  });

  it('take the Idempotency-Key they are asked for under: the same body is answered again, another is a conflict', async () => {
    const first = await generate('a claim');
    const hit = await generate('a claim', 'key');
    expect(hit.json).to.include({ id: first.json.id, cached: true });
    expect(hit.headers.has('idempotency-replayed')).to.equal(false);
    const again = await generate('a claim', 'key');
    expect(again.text).to.equal(hit.text);
    expect(again.headers.get('idempotency-replayed')).to.equal('true');
    const stored = await generate('a second claim');
    for (const prompt of ['another body', 'a second claim']) {
      const { status, json } = await generate(prompt, 'key');
      expect([status, json.error?.code], prompt).to.deep.equal([409, 'idempotency_conflict']);
      expect(json.request_id).to.equal(first.json.id);
    }
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([10, 10]);
    expect(stored.status).to.equal(200);
  });

  it('leave a key to the request that it was used for', async () => {
    const first = await generate('its own', 'own');
    const again = await generate('its own', 'own');
    expect(again.headers.get('idempotency-replayed')).to.equal('true');
    expect(again.json).to.deep.equal(first.json);
  });

  it('are 410 under their key once they are deleted, although they were made as a stream', async () => {
    await generate('streamed', undefined, { stream: true });
    const hit = await generate('streamed', 'streamed');
    expect(hit.json.cached).to.equal(true);
    await service.call('DELETE', `/v1/images/${hit.json.id}`, { secret: caller.secret });
    const again = await generate('streamed', 'streamed');
    expect([again.status, again.json.error.code]).to.deep.equal([410, 'gone']);
  });

  it('by many at once under one key are one answer', async () => {
    await generate('many');
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => generate(index % 2 === 0 ? 'many' : `not ${index}`, 'many')),
    );
    const statuses = answers.map(({ status }) => status);
    const isOfHits = statuses[0] === 200;
    expect(statuses.every((status, index) => (status === 200) === (index % 2 === 0))).to.equal(isOfHits);
    expect((await service.chargesOf(caller.accountId)).length).to.equal(isOfHits ? 1 : 2);
  });
});
