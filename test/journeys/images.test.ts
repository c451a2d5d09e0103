/** Images as users meet them: the official client in front, the sandbox behind, pictures that are pictures, the books exact. */
import { expect } from 'chai';
import { afterEach, before, beforeEach, describe, it } from 'mocha';
import OpenAI, { toFile } from 'openai';
import type { ImageEditStreamEvent, ImageGenStreamEvent } from 'openai/resources/images';
import sharp from 'sharp';
import { inspectPicture } from '../../core/pictures.ts';
import { IMAGE_MODEL, makeImageModel } from '../helpers/image-models.ts';
import { makePng } from '../helpers/pictures.ts';
import { eventually, type TestCaller, withTestService } from '../helpers/service.ts';
import { ONCE, refusalOf } from './openai-client.ts';

const BALANCE_AP = 100_000;
const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}';
const SMALL = { model: IMAGE_MODEL, size: '64x64', quality: 'low' } as const;

/** What this service says besides the convention. */
interface Ours {
  readonly id: string;
  readonly cached: boolean;
  readonly ap_cost: number;
  readonly data: readonly {
    readonly b64_json?: string;
    readonly url: string;
    readonly candidate_id: string;
  }[];
}

describe('images with the official client', () => {
  const service = withTestService();
  let caller: TestCaller;
  let client: OpenAI;
  let expectedCharges: number[];

  const clientOf = ({ secret }: Pick<TestCaller, 'secret'>) =>
    new OpenAI({ baseURL: `${service.urls[0]}/v2.5`, apiKey: secret, ...ONCE });
  const ours = (answer: object) => answer as unknown as Ours;
  const fetchFile = (url: string, headers: Record<string, string> = {}) =>
    fetch(url, { headers: { authorization: `Bearer ${caller.secret}`, ...headers } });

  before('a model of the sandbox', () =>
    makeImageModel(service, { id: IMAGE_MODEL, provider: 'sandbox', recommended: true }),
  );
  beforeEach(async () => {
    caller = await service.makeCaller({ balanceAp: BALANCE_AP });
    client = clientOf(caller);
    expectedCharges = [];
  });
  afterEach('the ledger is exact', async () => {
    expect(await service.chargesOf(caller.accountId), 'charges').to.deep.equal(expectedCharges);
    const charged = expectedCharges.reduce((sum, ap) => sum + ap, 0);
    expect(await service.balanceOf(caller.accountId)).to.deep.equal({
      balanceAp: BALANCE_AP - charged,
      heldAp: 0,
      purchasedAp: BALANCE_AP - charged,
    });
  });

  describe('a generation', () => {
    it('gives a picture of the size that was asked for, as base64 and at an address, and says what it cost', async () => {
      const { data: answer, response } = await client.images
        .generate({ ...SMALL, prompt: 'a lighthouse at dusk' })
        .withResponse();
      const { id, data, cached, ap_cost: cost } = ours(answer);
      expect(id).to.match(new RegExp(`^${UUID}$`));
      expect(response.headers.get('x-svc-image-id')).to.equal(id);
      expect(response.headers.get('x-svc-request-id')).to.equal(id);
      expect(response.headers.get('x-svc-ap-cost')).to.equal('10');
      expect(response.headers.get('x-svc-model')).to.equal(IMAGE_MODEL);
      expect({ cached, cost, created: typeof answer.created }).to.deep.equal({
        cached: false,
        cost: 10,
        created: 'number',
      });
      expect(answer).to.include({ size: '64x64', quality: 'low', output_format: 'png' });
      expect(answer.usage?.total_tokens).to.be.above(0);
      expect(data).to.have.length(1);
      const bytes = Buffer.from(data[0]?.b64_json ?? '', 'base64');
      expect(await inspectPicture(bytes)).to.include({ format: 'png', width: 64, height: 64 });
      expect(data[0]?.url).to.equal(`${service.urls[0]}/v1/images/file/${id}`);
      const file = await fetchFile(data[0]?.url ?? '');
      expect(file.headers.get('content-type')).to.equal('image/png');
      expect(file.headers.get('cache-control')).to.match(/^private/);
      expect(Buffer.from(await file.arrayBuffer()).equals(bytes)).to.equal(true);
      expectedCharges = [10];
    });

    it('is signed: the picture says that a model made it, and which', async () => {
      const answer = await client.images.generate({ ...SMALL, prompt: 'a signed picture' });
      const bytes = Buffer.from(answer.data?.[0]?.b64_json ?? '', 'base64');
      expect(bytes.includes('c2pa')).to.equal(true);
      expect(bytes.includes('trainedAlgorithmicMedia')).to.equal(true);
      expectedCharges = [10];
    });

    for (const format of ['jpeg', 'webp'] as const) {
      it(`comes as ${format} where that is asked for`, async () => {
        const answer = await client.images.generate({
          ...SMALL,
          prompt: `a picture as ${format}`,
          output_format: format,
          output_compression: 60,
        });
        const bytes = Buffer.from(answer.data?.[0]?.b64_json ?? '', 'base64');
        expect(await inspectPicture(bytes)).to.include({ format, width: 64, height: 64 });
        expect(answer.output_format).to.equal(format);
        const file = await fetchFile(ours(answer).data[0]?.url ?? '');
        expect(file.headers.get('content-type')).to.equal(`image/${format}`);
        expectedCharges = [10];
      });
    }

    it('of three is three candidates, each with a file, and a marked preview, of its own', async () => {
      const answer = await client.images.generate({ ...SMALL, prompt: 'three birds', n: 3 });
      const { data } = ours(answer);
      expect(data).to.have.length(3);
      expect(new Set(data.map(({ b64_json }) => b64_json)).size).to.equal(3);
      for (const { candidate_id: candidate, url, b64_json: encoded } of data) {
        expect(url).to.equal(`${service.urls[0]}/v1/images/file/${candidate}`);
        const file = Buffer.from(await (await fetchFile(url)).arrayBuffer());
        expect(file.toString('base64')).to.equal(encoded);
        const preview = await fetchFile(`${service.urls[0]}/v1/images/candidate/${candidate}`);
        expect(preview.headers.get('content-type')).to.equal('image/jpeg');
        const bytes = Buffer.from(await preview.arrayBuffer());
        expect(await inspectPicture(bytes)).to.include({ format: 'jpeg', width: 64, height: 64 });
        const again = await fetchFile(`${service.urls[0]}/v1/images/candidate/${candidate}`, {
          'if-none-match': preview.headers.get('etag') ?? '',
        });
        expect(again.status).to.equal(304);
      }
      // the generation's own address is that of the first
      const first = await fetchFile(`${service.urls[0]}/v1/images/file/${ours(answer).id}`);
      expect(Buffer.from(await first.arrayBuffer()).toString('base64')).to.equal(data[0]?.b64_json);
      expectedCharges = [30];
    });

    it('needs nothing but a prompt: model, size and quality have defaults', async () => {
      const answer = await client.images.generate({ prompt: 'whatever you like' });
      expect(answer).to.include({ size: '64x64', quality: 'medium' });
      expect(ours(answer).ap_cost).to.equal(40);
      expectedCharges = [40];
    });

    it('with an address alone carries no picture', async () => {
      const answer = await client.images.generate({
        ...SMALL,
        prompt: 'an address',
        response_format: 'url',
      });
      expect(answer.data?.[0]).to.have.property('url');
      expect(answer.data?.[0]).to.not.have.property('b64_json');
      expectedCharges = [10];
    });

    it('that the provider’s safety system declines is free', async () => {
      const refusal = await refusalOf(
        client.images.generate({ ...SMALL, prompt: '[[sandbox:error=moderated]] something' }),
      );
      expect(refusal.status).to.equal(422);
      expect(refusal.code).to.equal('content_moderated');
    });

    it('that fails upstream is free', async () => {
      const refusal = await refusalOf(
        client.images.generate({ ...SMALL, prompt: '[[sandbox:error=invalid_response]] something' }),
      );
      expect(refusal.status).to.equal(503);
      expect(refusal.code).to.equal('generation_failed');
    });

    it('is held for in full before anything is made', async () => {
      const poor = await service.makeCaller({ balanceAp: 25 });
      const refusal = await refusalOf(clientOf(poor).images.generate({ ...SMALL, prompt: 'three', n: 3 }));
      expect(refusal.status).to.equal(402);
      expect(refusal.code).to.equal('insufficient_ap');
      expect(await service.chargesOf(poor.accountId)).to.deep.equal([]);
    });
  });

  describe('a stream', () => {
    it('brings partial pictures, then the finished one once it is on the books', async () => {
      const { data: stream, response } = await client.images
        .generate({ ...SMALL, prompt: 'a harbour', stream: true, partial_images: 2 })
        .withResponse();
      const id = response.headers.get('x-svc-image-id');
      const events: ImageGenStreamEvent[] = [];
      for await (const event of stream) {
        events.push(event);
        if (event.type === 'image_generation.completed')
          expect(await service.chargesOf(caller.accountId)).to.deep.equal([10]);
      }
      expect(events.map((event) => event.type)).to.deep.equal([
        'image_generation.partial_image',
        'image_generation.partial_image',
        'image_generation.completed',
      ]);
      for (const event of events) {
        const picture = await inspectPicture(Buffer.from(event.b64_json, 'base64'));
        expect(picture.format).to.equal('png');
        expect(event).to.include({ size: '64x64', quality: 'low', output_format: 'png' });
      }
      expect(events.slice(0, 2)).to.have.nested.property('[1].partial_image_index', 1);
      expect(events[2]).to.deep.include({ id, cached: false, ap_cost: 10 });
      expectedCharges = [10];
    });

    it('of several pictures says which is which', async () => {
      const stream = await client.images.generate({ ...SMALL, prompt: 'two', n: 2, stream: true });
      const events: unknown[] = [];
      for await (const event of stream) events.push(event);
      expect(events).to.have.length(2);
      expect(events[0]).to.include({ index: 0, ap_cost: 10 });
      expect(events[1]).to.include({ index: 1, ap_cost: 10 });
      expectedCharges = [20];
    });

    it('is written in the convention’s framing: event and data', async () => {
      const { text, headers } = await service.post('/v1/images/generations', {
        secret: caller.secret,
        body: { ...SMALL, prompt: 'framed', stream: true },
      });
      expect(headers.get('content-type')).to.match(/^text\/event-stream/);
      expect(text).to.match(
        /^event: image_generation\.completed\ndata: \{"type":"image_generation\.completed",.*\}\n\n$/,
      );
      expectedCharges = [10];
    });

    it('whose caller leaves is finished, charged once and collected by the id of its first byte', async () => {
      const response = await fetch(`${service.urls[0]}/v1/images/generations`, {
        method: 'POST',
        headers: { authorization: `Bearer ${caller.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...SMALL, prompt: '[[sandbox:delay=2300]] left early', stream: true }),
      });
      const id = response.headers.get('x-svc-image-id') ?? '';
      await response.body?.cancel();
      expect((await service.get(`/v1/images/status/${id}`, { secret: caller.secret })).status).to.equal(202);
      const collected = await eventually(async () => {
        const answer = await service.get(`/v1/images/status/${id}`, { secret: caller.secret });
        expect(answer.status).to.equal(200);
        return answer;
      });
      expect(collected.json).to.include({ id, status: 'succeeded', ap_cost: 10 });
      const picture = await inspectPicture(Buffer.from(collected.json.data[0].b64_json, 'base64'));
      expect(picture).to.include({ width: 64, height: 64 });
      expectedCharges = [10];
    });

    it('that fails before it begins has its proper status', async () => {
      const refusal = await refusalOf(
        client.images.generate({ ...SMALL, prompt: '[[sandbox:error=moderated]]', stream: true }),
      );
      expect(refusal.status).to.equal(422);
    });
  });

  describe('an edit', () => {
    const photo = makePng(80, 40, { rgb: [200, 40, 40] });
    let mask: Buffer;
    before(async () => {
      const background = { r: 0, g: 0, b: 0, alpha: 0 };
      mask = await sharp({ create: { width: 80, height: 40, channels: 4, background } })
        .png()
        .toBuffer();
    });

    it('takes pictures as a form, as the client sends them', async () => {
      const answer = await client.images.edit({
        ...SMALL,
        prompt: 'make it blue',
        image: [await toFile(photo, 'photo.png'), await toFile(makePng(30, 30), 'second.png')],
        mask: await toFile(mask, 'mask.png'),
        n: 2,
      });
      expect(answer.data).to.have.length(2);
      const picture = await inspectPicture(Buffer.from(answer.data?.[1]?.b64_json ?? '', 'base64'));
      expect(picture).to.include({ format: 'png', width: 64, height: 64 });
      expectedCharges = [20];
    });

    it('streams with the names of edits', async () => {
      const stream = await client.images.edit({
        ...SMALL,
        prompt: 'make it green',
        image: await toFile(photo, 'photo.png'),
        stream: true,
        partial_images: 1,
      });
      const types: ImageEditStreamEvent['type'][] = [];
      for await (const event of stream) types.push(event.type);
      expect(types).to.deep.equal(['image_edit.partial_image', 'image_edit.completed']);
      expectedCharges = [10];
    });

    for (const field of ['reference_image', 'image', 'reference_images'] as const) {
      it(`takes base64 in JSON as ${field}`, async () => {
        const encoded = photo.toString('base64');
        const answer = await service.post('/v1/images/edits', {
          secret: caller.secret,
          body: {
            ...SMALL,
            prompt: `edit ${field}`,
            [field]: field === 'reference_images' ? [encoded, `data:image/png;base64,${encoded}`] : encoded,
          },
        });
        expect(answer.status).to.equal(200);
        expectedCharges = [10];
      });
    }

    it('leaves nothing of what the caller sent once it is done', async () => {
      await client.images.edit({ ...SMALL, prompt: 'x', image: await toFile(photo, 'photo.png') });
      await eventually(async () => {
        const { rows } = await service.pool.query(`select from app.assets where kind = 'input'`);
        expect(rows).to.have.length(0);
      });
      expectedCharges = [10];
    });

    it('that is refused leaves nothing: no file, no row', async () => {
      const poor = await service.makeCaller({ balanceAp: 5 });
      const previous = await service.traces();
      const put = service.store.put;
      let puts = 0;
      service.store.put = (...args) => {
        puts += 1;
        return put.apply(service.store, args);
      };
      const refusal = await refusalOf(
        clientOf(poor).images.edit({ ...SMALL, prompt: 'x', image: await toFile(photo, 'photo.png') }),
      );
      service.store.put = put;
      expect(refusal.code).to.equal('insufficient_ap');
      expect(puts, 'files that were put').to.equal(0);
      expect(await service.traces()).to.deep.equal(previous);
      const { rows } = await service.pool.query('select from app.assets where account_id = $1', [
        poor.accountId,
      ]);
      expect(rows).to.have.length(0);
    });
  });

  describe('the same again', () => {
    it('is free, the same picture under the same id, and nothing on the books', async () => {
      const first = await client.images.generate({ ...SMALL, prompt: 'twice' });
      const { data: again, response } = await client.images
        .generate({ ...SMALL, prompt: 'twice' })
        .withResponse();
      expect(again).to.deep.equal({ ...first, cached: true, ap_cost: 0 });
      expect(response.headers.get('x-svc-cached')).to.equal('true');
      expect(response.headers.get('x-svc-ap-cost')).to.equal('0');
      expect(response.headers.get('x-svc-image-id')).to.equal(ours(first).id);
      const { json } = await service.get('/v1/requests', { secret: caller.secret });
      expect(json.data).to.have.length(1);
      expectedCharges = [10];
    });

    it('also as a stream, of a stream, and for an edit with the same bytes', async () => {
      const image = makePng(20, 20, { rgb: [1, 2, 3] });
      for await (const _ of await client.images.edit({
        ...SMALL,
        prompt: 'again',
        image: await toFile(image, 'a.png'),
        stream: true,
      })) {
        // taken to its end
      }
      const whole = await client.images.edit({
        ...SMALL,
        prompt: 'again',
        image: await toFile(image, 'b.png'),
      });
      expect(whole).to.include({ cached: true, ap_cost: 0 });
      const events: unknown[] = [];
      for await (const event of await client.images.edit({
        ...SMALL,
        prompt: 'again',
        image: await toFile(image, 'c.png'),
        stream: true,
      }))
        events.push(event);
      expect(events).to.have.length(1);
      expect(events[0]).to.deep.include({
        type: 'image_edit.completed',
        cached: true,
        ap_cost: 0,
        id: ours(whole).id,
      });
      expectedCharges = [10];
    });

    it('is made anew when the caller says so, and for another prompt, parameter or account', async () => {
      const first = await client.images.generate({ ...SMALL, prompt: 'anew' });
      const changes = [{ cache: false }, { seed: 1 }, { output_format: 'webp' }, { prompt: 'anew?' }];
      for (const change of changes) {
        const answer = await client.images.generate({ ...SMALL, prompt: 'anew', ...change } as never);
        expect(ours(answer).cached, JSON.stringify(change)).to.equal(false);
        expect(ours(answer).id).to.not.equal(ours(first).id);
      }
      const other = await service.makeCaller({});
      const theirs = await clientOf(other).images.generate({ ...SMALL, prompt: 'anew' });
      expect(ours(theirs)).to.include({ cached: false, ap_cost: 10 });
      expectedCharges = [10, 10, 10, 10, 10];
    });

    it('is made anew once it was deleted', async () => {
      const first = await client.images.generate({ ...SMALL, prompt: 'deleted' });
      await service.call('DELETE', `/v1/images/${ours(first).id}`, { secret: caller.secret });
      const again = await client.images.generate({ ...SMALL, prompt: 'deleted' });
      expect(ours(again).cached).to.equal(false);
      expectedCharges = [10, 10];
    });
  });

  describe('collecting later', () => {
    it('finishes what its caller left at once, charged once, and lists it', async () => {
      const controller = new AbortController();
      const left = client.images
        .generate({ ...SMALL, prompt: '[[sandbox:delay=300]] gone' }, { signal: controller.signal })
        .then(
          () => undefined,
          (error: unknown) => error,
        );
      await eventually(async () => {
        const { rows } = await service.pool.query('select from app.requests where account_id = $1', [
          caller.accountId,
        ]);
        expect(rows).to.have.length(1);
      });
      controller.abort();
      expect(await left).to.be.instanceOf(OpenAI.APIUserAbortError);
      const listed = await eventually(async () => {
        const { json } = await service.get('/v1/images', { secret: caller.secret });
        expect(json.data).to.have.length(1);
        return json.data[0];
      });
      const { status, json } = await service.get(`/v2.5/images/status/${listed.id}`, {
        secret: caller.secret,
      });
      expect(status).to.equal(200);
      expect(json.id).to.equal(listed.id);
      expectedCharges = [10];
    });

    it('says what went wrong with one that failed', async () => {
      const { json } = await service.post('/v1/images/generations', {
        secret: caller.secret,
        body: { ...SMALL, prompt: '[[sandbox:error=moderated]]' },
        headers: { prefer: 'respond-async' },
      });
      await eventually(async () => {
        const found = await service.get(`/v1/images/status/${json.id}`, { secret: caller.secret });
        expect(found.status).to.equal(200);
        expect(found.json).to.deep.include({ id: json.id, status: 'failed' });
        expect(found.json.error.code).to.equal('content_moderated');
      });
    });

    it('gives the answer when its JSON is no longer kept: the pictures and their rows are', async () => {
      const first = await client.images.generate({ ...SMALL, prompt: 'kept long', n: 2 });
      await service.pool.query('delete from app.request_results where request_id = $1', [ours(first).id]);
      const { json } = await service.get(`/v1/images/status/${ours(first).id}`, { secret: caller.secret });
      expect(json).to.deep.equal({ ...first, status: 'succeeded' });
      expectedCharges = [20];
    });

    it('answers a repeated Idempotency-Key with the first answer, free; another body conflicts', async () => {
      const options = { headers: { 'Idempotency-Key': 'once' } };
      const photo = makePng(20, 20);
      const edit = async (prompt: string) =>
        client.images.edit({ ...SMALL, prompt, image: await toFile(photo, 'a.png') }, options).withResponse();
      const first = await edit('the same');
      const again = await edit('the same');
      expect(again.data).to.deep.equal(first.data);
      expect(again.response.headers.get('idempotency-replayed')).to.equal('true');
      expect(again.response.headers.get('x-svc-image-id')).to.equal(ours(first.data).id);
      const refusal = await refusalOf(edit('another'));
      expect(refusal.code).to.equal('idempotency_conflict');
      expectedCharges = [10];
    });

    it('replays a stream with its pictures', async () => {
      const call = () =>
        service.post('/v1/images/generations', {
          secret: caller.secret,
          body: { ...SMALL, prompt: 'streamed once', stream: true, partial_images: 1 },
          headers: { 'idempotency-key': 'stream' },
        });
      const first = await call();
      const again = await call();
      expect(again.headers.get('idempotency-replayed')).to.equal('true');
      expect(again.text).to.equal(first.text);
      expectedCharges = [10];
    });

    it('shows the request with addresses instead of pictures', async () => {
      const answer = ours(await client.images.generate({ ...SMALL, prompt: 'a request' }));
      const { json } = await service.get(`/v1/requests/${answer.id}`, { secret: caller.secret });
      expect(json).to.include({ status: 'succeeded', area: 'images', ap_cost: 10 });
      expect(json.result.data).to.deep.equal([
        { url: answer.data[0]?.url, candidate_id: answer.data[0]?.candidate_id },
      ]);
      for await (const _ of await client.images.generate({ ...SMALL, prompt: 'streamed', stream: true })) {
        // taken to its end
      }
      const list = await service.get('/v1/requests', { secret: caller.secret });
      const streamed = await service.get(`/v1/requests/${list.json.data[0].id}`, { secret: caller.secret });
      expect(streamed.json.result).to.include({ id: list.json.data[0].id, ap_cost: 10 });
      expectedCharges = [10, 10];
    });
  });

  describe('the caller’s own images', () => {
    it('are listed newest first, page by page', async () => {
      const ids: string[] = [];
      for (const prompt of ['one', 'two', 'three'])
        ids.unshift(ours(await client.images.generate({ ...SMALL, prompt })).id);
      const first = await service.get('/v1/images?limit=2', { secret: caller.secret });
      expect(first.json.data.map((entry: { id: string }) => entry.id)).to.deep.equal(ids.slice(0, 2));
      expect(first.json.has_more).to.equal(true);
      const rest = await service.get(`/v1/images?limit=2&cursor=${first.json.next_cursor}`, {
        secret: caller.secret,
      });
      expect(rest.json.data.map((entry: { id: string }) => entry.id)).to.deep.equal(ids.slice(2));
      expect(rest.json).to.include({ has_more: false, next_cursor: null });
      expectedCharges = [10, 10, 10];
    });

    it('have metadata, and are gone once deleted', async () => {
      const { id, data } = ours(await client.images.generate({ ...SMALL, prompt: 'to be deleted' }));
      const { json } = await service.get(`/v1/images/${id}`, { secret: caller.secret });
      expect(json).to.include({
        id,
        object: 'image.generation',
        status: 'succeeded',
        model: IMAGE_MODEL,
        ap_cost: 10,
      });
      expect(json.data[0]).to.include({ width: 64, height: 64, content_type: 'image/png' });
      const deleted = await service.call('DELETE', `/v1/images/${id}`, { secret: caller.secret });
      expect(deleted.json).to.deep.equal({ id, object: 'image.deleted', deleted: true });
      for (const path of [
        id,
        `file/${id}`,
        `file/${data[0]?.candidate_id}`,
        `status/${id}`,
        `candidate/${id}`,
      ]) {
        const answer = await service.get(`/v1/images/${path}`, { secret: caller.secret });
        expect(answer.status, path).to.equal(410);
        expect(answer.json.error.code, path).to.equal('gone');
      }
      const again = await service.call('DELETE', `/v1/images/${id}`, { secret: caller.secret });
      expect(again.status).to.equal(410);
      expect((await service.get('/v1/images', { secret: caller.secret })).json.data).to.deep.equal([]);
      expectedCharges = [10];
    });

    it('are nobody else’s', async () => {
      const { id, data } = ours(await client.images.generate({ ...SMALL, prompt: 'mine' }));
      const other = await service.makeCaller({});
      const candidate = data[0]?.candidate_id;
      for (const path of [id, `file/${id}`, `file/${candidate}`, `status/${id}`, `candidate/${candidate}`]) {
        expect((await service.get(`/v1/images/${path}`, { secret: other.secret })).status, path).to.equal(
          404,
        );
      }
      const removed = await service.call('DELETE', `/v1/images/${id}`, { secret: other.secret });
      expect(removed.status).to.equal(404);
      expectedCharges = [10];
    });

    it('are past their retention after it: 410 expired', async () => {
      const { id } = ours(await client.images.generate({ ...SMALL, prompt: 'old' }));
      await service.pool.query(
        `update app.assets set expires_at = now() - interval '1 minute' where request_id = $1`,
        [id],
      );
      for (const path of [id, `file/${id}`, `status/${id}`]) {
        const answer = await service.get(`/v1/images/${path}`, { secret: caller.secret });
        expect(answer.json.error.code, path).to.equal('expired');
      }
      expectedCharges = [10];
    });
  });

  it('lists its image models with their prices, and which is meant when none is named', async () => {
    const { json } = await service.get('/v1/images/models');
    expect(json.recommended).to.equal(IMAGE_MODEL);
    expect(json.data[0]).to.deep.include({
      id: IMAGE_MODEL,
      type: 'image',
      endpoint: 'POST /v1/images/generations',
    });
    expect(json.data[0].pricing[0]).to.deep.equal({
      unit: 'per_image',
      size: '64x64',
      quality: 'low',
      ap: 10,
    });
    const models: string[] = [];
    for await (const model of client.models.list()) models.push(model.id);
    expect(models).to.include(IMAGE_MODEL);
  });
});

describe('images past the edge limit', () => {
  const service = withTestService({ config: { edgeWaitSeconds: 1 } });

  before('a model of the sandbox', () =>
    makeImageModel(service, { id: IMAGE_MODEL, provider: 'sandbox', recommended: true }),
  );

  it('are answered 202 with the address that collects them, and at once where that is preferred', async () => {
    const { secret, accountId } = await service.makeCaller({});
    const waited = await service.post('/v1/images/generations', {
      secret,
      body: { ...SMALL, prompt: '[[sandbox:delay=1500]] slow' },
    });
    const asked = await service.post('/v2.5/images/generations', {
      secret,
      body: { ...SMALL, prompt: 'at once' },
      headers: { prefer: 'respond-async' },
    });
    for (const answer of [waited, asked]) {
      expect(answer.status).to.equal(202);
      const { id } = answer.json;
      expect(answer.headers.get('x-svc-image-id')).to.equal(id);
      expect(answer.headers.get('location')).to.equal(`/v1/images/status/${id}`);
      expect(answer.json.status_url).to.equal(`${service.urls[0]}/v1/images/status/${id}`);
      await eventually(async () => {
        const { status, json } = await service.get(`/v1/images/status/${id}`, { secret });
        expect(status).to.equal(200);
        expect(json.data[0].b64_json).to.be.a('string');
      });
    }
    expect(await service.chargesOf(accountId)).to.deep.equal([10, 10]);
  });
});
