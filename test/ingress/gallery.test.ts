/** The public gallery over HTTP: publishing (paid once), the page, the bytes, taking back, deleting, taking down. */
import { expect } from 'chai';
import { before, beforeEach, describe, it } from 'mocha';
import { sweepAssets } from '../../workers/tasks/maintenance/assets.ts';
import { GALLERY_PRICE_AP, makeGalleryPrice, makePictures, PICTURE_AP } from '../helpers/gallery.ts';
import { IMAGE_MODEL, makeImageModel } from '../helpers/image-models.ts';
import { startTestService, type TestCaller, withTestService } from '../helpers/service.ts';

const TOKEN = /^lic_[A-Za-z0-9_-]{32}$/;

describe('the gallery', () => {
  const service = withTestService({ config: { ipDailyCap: 0 } });
  let caller: TestCaller;

  before('models', async () => {
    await makeImageModel(service, { id: IMAGE_MODEL, provider: 'sandbox' });
    await makeGalleryPrice(service);
  });
  beforeEach(async () => {
    caller = await service.makeCaller({ ratePerMinute: 1000 });
  });

  const publish = (id: string, headers: Record<string, string> = {}, secret = caller.secret) =>
    service.post(`/v1/images/${id}/publish`, { secret, headers });
  const withdraw = (id: string, secret = caller.secret) =>
    service.call('DELETE', `/v1/images/${id}/publish`, { secret });
  const page = async (query = '') => (await service.get(`/v1/images/gallery${query}`)).json;
  const idsOf = async (query = '') =>
    (await page(query)).items.map((item: { id: string }) => item.id) as string[];

  describe('publishing', () => {
    it('costs the gallery-submit price, and answers with the item', async () => {
      const { id } = await makePictures(service, caller.secret);
      const answer = await publish(id);
      expect(answer.status).to.equal(200);
      expect(answer.headers.get('x-svc-ap-cost')).to.equal(String(GALLERY_PRICE_AP));
      expect(answer.headers.get('x-svc-model')).to.equal('gallery-submit');
      const { license_token: token, published_at: at, ...rest } = answer.json;
      expect(rest).to.deep.equal({
        object: 'gallery.item',
        id,
        url: `${service.urls[0]}/v1/images/gallery/${id}`,
        width: 64,
        height: 64,
        model: IMAGE_MODEL,
        character: null,
        ap_cost: GALLERY_PRICE_AP,
      });
      expect(token).to.match(TOKEN);
      expect(Math.abs(Date.parse(at) - Date.now())).to.be.below(60_000);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([PICTURE_AP, GALLERY_PRICE_AP]);

      const requestId = answer.headers.get('x-svc-request-id') ?? '';
      const request = await service.get(`/v1/requests/${requestId}`, { secret: caller.secret });
      expect(request.json).to.include({ status: 'succeeded', area: 'images', ap_cost: GALLERY_PRICE_AP });
      expect(request.json.result).to.deep.equal(answer.json);
    });

    it('shows the price in the price list, with the endpoint that takes it', async () => {
      const { json } = await service.get('/v1/models/gallery-submit');
      expect(json).to.deep.include({
        type: 'gateway',
        endpoint: 'POST /v1/images/{id}/publish',
        pricing: { unit: 'per_call', ap: GALLERY_PRICE_AP },
      });
    });

    it('again is free, and changes nothing', async () => {
      const { id } = await makePictures(service, caller.secret);
      const first = await publish(id);
      const second = await publish(id);
      expect(second.status).to.equal(200);
      expect(second.headers.get('x-svc-ap-cost')).to.equal('0');
      expect(second.json).to.deep.equal({ ...first.json, ap_cost: 0 });
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([PICTURE_AP, GALLERY_PRICE_AP]);
    });

    it('by thirty calls at once is one charge', async () => {
      const { id, candidates } = await makePictures(service, caller.secret);
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, index) => publish(index % 2 === 0 ? id : (candidates[0] ?? ''))),
      );
      expect(answers.map((answer) => answer.status)).to.deep.equal(Array(30).fill(200));
      const paid = answers.filter((answer) => answer.json.ap_cost > 0);
      expect(paid).to.have.length(1);
      expect(new Set(answers.map((answer) => answer.json.license_token)).size).to.equal(1);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([PICTURE_AP, GALLERY_PRICE_AP]);
      expect((await idsOf()).filter((one) => one === id)).to.have.length(1);
    });

    it('and taking back at the same time ends in one of both, with totals that agree', async () => {
      const { id } = await makePictures(service, caller.secret);
      await publish(id);
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? publish(id) : withdraw(id))),
      );
      expect(answers.map((answer) => answer.status)).to.deep.equal(Array(20).fill(200));
      const { items, total } = await page('?limit=100');
      expect(total).to.equal(items.length);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([PICTURE_AP, GALLERY_PRICE_AP]);
    });

    it('and deleting at the same time leaves nothing in the gallery', async () => {
      const { id } = await makePictures(service, caller.secret, { n: 3 });
      const { json } = await service.get(`/v1/images/${id}`, { secret: caller.secret });
      const candidates = json.data.map((one: { candidate_id: string }) => one.candidate_id) as string[];
      await Promise.all([
        ...candidates.map((candidate) => publish(candidate)),
        service.call('DELETE', `/v1/images/${id}`, { secret: caller.secret }),
        ...candidates.map((candidate) => publish(candidate)),
      ]);
      const shown = await idsOf('?limit=100');
      expect(shown.filter((one) => candidates.includes(one))).to.deep.equal([]);
      const { items, total } = await page('?limit=100');
      expect(total).to.equal(items.length);
    });

    it('of a generation with several pictures publishes the first, of a candidate that one', async () => {
      const { id, candidates } = await makePictures(service, caller.secret, { n: 3 });
      expect((await publish(id)).json.id).to.equal(candidates[0]);
      expect((await publish(candidates[2] ?? '')).json.id).to.equal(candidates[2]);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([
        3 * PICTURE_AP,
        GALLERY_PRICE_AP,
        GALLERY_PRICE_AP,
      ]);
    });

    it('under an Idempotency-Key gives the first answer again, free, whatever happened since', async () => {
      const { id } = await makePictures(service, caller.secret);
      const headers = { 'idempotency-key': 'publish it' };
      const first = await publish(id, headers);
      await withdraw(id);
      const again = await publish(id, headers);
      expect(again.json).to.deep.equal(first.json);
      expect(again.headers.get('idempotency-replayed')).to.equal('true');
      expect(again.headers.get('x-svc-ap-cost')).to.equal('0');
      expect(await idsOf()).to.not.include(id);
      const other = await makePictures(service, caller.secret);
      const conflict = await publish(other.id, headers);
      expect(conflict.json.error.code).to.equal('idempotency_conflict');
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([
        PICTURE_AP,
        GALLERY_PRICE_AP,
        PICTURE_AP,
      ]);
    });

    it('is refused by the checks of every paid request, and then leaves nothing', async () => {
      const cases = [
        { with: { balanceAp: PICTURE_AP + GALLERY_PRICE_AP - 1 }, status: 402, code: 'insufficient_ap' },
        { with: { capPerRequestAp: GALLERY_PRICE_AP - 1 }, status: 403, code: 'request_over_key_cap' },
        { with: { capDailyAp: PICTURE_AP + 1 }, status: 403, code: 'request_over_key_cap' },
      ];
      for (const { with: options, status, code } of cases) {
        const { secret, accountId } = await service.makeCaller(options);
        const { id } = await makePictures(service, secret);
        const before = await service.traces();
        const answer = await publish(id, { 'idempotency-key': 'k' }, secret);
        expect(answer.status, code).to.equal(status);
        expect(answer.json.error.code).to.equal(code);
        expect(await service.traces()).to.deep.equal(before);
        const licenses = await service.pool.query(
          'select from app.licenses l join app.assets a on a.id = l.asset_id where a.account_id = $1',
          [accountId],
        );
        expect(licenses.rowCount).to.equal(0);
      }
    });

    it('counts against the key’s caps', async () => {
      const { secret } = await service.makeCaller({ capDailyAp: 2 * PICTURE_AP + GALLERY_PRICE_AP });
      const [first, second] = [await makePictures(service, secret), await makePictures(service, secret)];
      expect((await publish(first.id, {}, secret)).status).to.equal(200);
      expect((await publish(second.id, {}, secret)).json.error.code).to.equal('request_over_key_cap');
    });

    it('of another account’s picture is 404', async () => {
      const { id, candidates } = await makePictures(service, caller.secret);
      const { secret, accountId } = await service.makeCaller();
      for (const one of [id, candidates[0] ?? '', 'nothing']) {
        for (const answer of [await publish(one, {}, secret), await withdraw(one, secret)])
          expect(answer.json.error.code).to.equal('not_found');
      }
      await publish(id);
      expect((await withdraw(id, secret)).status).to.equal(404);
      expect(await idsOf()).to.include(id);
      expect(await service.chargesOf(accountId)).to.deep.equal([]);
    });

    it('needs the scope images', async () => {
      const { id } = await makePictures(service, caller.secret);
      const { secret } = await service.makeCaller({ scopes: ['llm', 'cert'] });
      for (const [method, path] of [
        ['POST', `/v1/images/${id}/publish`],
        ['DELETE', `/v1/images/${id}/publish`],
        ['POST', `/v1/images/${id}/certify`],
        ['POST', '/v1/images/characters'],
      ] as const) {
        const answer = await service.call(method, path, { secret });
        expect(answer.json.required_scope, path).to.equal('images');
      }
    });

    it('is not on offer where the catalogue has no price for it', async () => {
      const { id } = await makePictures(service, caller.secret);
      const other = await publishWithoutPrice(id);
      expect(other.status).to.equal(404);
      expect(other.json).to.deep.include({ param: 'model' });
      expect(other.json.error.code).to.equal('model_not_found');
    });
    async function publishWithoutPrice(id: string) {
      const retire = (at: string) =>
        service.pool.query(`update app.models set retired_at = ${at} where id = 'gallery-submit'`);
      const offered = async (status: number) => {
        while ((await service.get('/v1/models/gallery-submit')).status !== status)
          await new Promise((resolve) => setTimeout(resolve, 5));
      };
      await retire('now()');
      await offered(404);
      const answer = await publish(id);
      await retire('null');
      await offered(200);
      return answer;
    }
  });

  describe('the page', () => {
    it('needs no key, is newest first, and counts all of them', async () => {
      const made: string[] = [];
      for (let index = 0; index < 3; index += 1) {
        const { id } = await makePictures(service, caller.secret);
        await publish(id);
        made.unshift(id);
      }
      const first = await page('?limit=2');
      expect(first).to.include({ limit: 2, offset: 0 });
      expect(first.items.map((item: { id: string }) => item.id)).to.deep.equal(made.slice(0, 2));
      expect(await idsOf('?limit=1&offset=2')).to.deep.equal(made.slice(2));
      const whole = await page('?limit=100');
      expect(whole.total).to.equal(first.total).and.to.equal(whole.items.length);
      expect(await page('?offset=9999')).to.deep.equal({
        items: [],
        total: first.total,
        limit: 20,
        offset: 9999,
      });
    });

    it('has an ETag and a short Cache-Control', async () => {
      const answer = await service.get('/v1/images/gallery');
      expect(answer.headers.get('cache-control')).to.match(/^public, max-age=\d{1,2}$/);
      const again = await service.get('/v1/images/gallery', {
        headers: { 'if-none-match': answer.headers.get('etag') ?? '' },
      });
      expect(again.status).to.equal(304);
    });

    for (const [query, param] of [
      ['?limit=0', 'limit'],
      ['?limit=101', 'limit'],
      ['?offset=-1', 'offset'],
      ['?limit=x', 'limit'],
    ]) {
      it(`refuses ${query}`, async () => {
        const { status, json } = await service.get(`/v1/images/gallery${query}`);
        expect(status).to.equal(400);
        expect(json.error.code).to.equal('invalid_parameter');
        expect(json.param).to.equal(param);
      });
    }

    it('refuses a character that is not public', async () => {
      for (const character of ['nobody', '01900000-0000-7000-8000-000000000000', '%00']) {
        const { status, json } = await service.get(`/v1/images/gallery?character=${character}`);
        expect(status).to.equal(400);
        expect(json.error.code).to.be.oneOf(['unknown_character', 'invalid_parameter']);
      }
    });
  });

  describe('a published picture', () => {
    it('is served to anybody, for caches to keep, by any of its ids', async () => {
      const { id, candidates } = await makePictures(service, caller.secret);
      const own = await fetch(`${service.urls[0]}/v1/images/file/${id}`, {
        headers: { authorization: `Bearer ${caller.secret}` },
      });
      const bytes = Buffer.from(await own.arrayBuffer());
      expect((await service.get(`/v1/images/gallery/${id}`)).status).to.equal(404);
      await publish(id);
      for (const one of [id, ...candidates]) {
        const answer = await fetch(`${service.urls[0]}/v1/images/gallery/${one}`);
        expect(answer.status).to.equal(200);
        expect(answer.headers.get('content-type')).to.equal('image/png');
        expect(answer.headers.get('cache-control')).to.equal('public, max-age=300');
        expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).to.equal(true);
        const part = await fetch(`${service.urls[0]}/v1/images/gallery/${one}`, {
          headers: { range: 'bytes=0-7' },
        });
        expect(part.status).to.equal(206);
      }
    });

    it('does not expire as long as it is published, and stays in its owner’s list', async () => {
      const { id, candidates } = await makePictures(service, caller.secret);
      await publish(id);
      await service.pool.query(
        `update app.assets set kept_expires_at = now() - interval '1 day' where id = $1`,
        [candidates[0]],
      );
      await sweepAssets({ pool: service.pool, store: service.store, logger: quiet });
      expect((await service.get(`/v1/images/gallery/${id}`)).status).to.equal(200);
      const { json } = await service.get('/v1/images', { secret: caller.secret });
      expect(json.data[0]).to.include({ id, expires_at: null });

      await withdraw(id);
      const kept = await service.get(`/v1/images/${id}`, { secret: caller.secret });
      const leftMs = Date.parse(kept.json.expires_at) - Date.now();
      expect(leftMs, 'a day to fetch it').to.be.within(23 * 3_600_000, 24 * 3_600_000);
      await service.pool.query(`update app.assets set expires_at = now(), sweep_at = now() where id = $1`, [
        candidates[0],
      ]);
      await sweepAssets({ pool: service.pool, store: service.store, logger: quiet });
      const gone = await service.get(`/v1/images/file/${id}`, { secret: caller.secret });
      expect(gone.json.error.code).to.equal('expired');
      expect((await publish(id)).json.error.code).to.equal('expired');
    });

    it('that is taken back is 404, and 200 once it is published again, free, as the newest', async () => {
      const { id } = await makePictures(service, caller.secret);
      const first = await publish(id);
      const before = await page();
      const taken = await withdraw(id);
      expect(taken.json).to.deep.equal({ id, object: 'gallery.item', published: false });
      expect((await withdraw(id)).status, 'again').to.equal(200);
      expect((await service.get(`/v1/images/gallery/${id}`)).status).to.equal(404);
      expect((await page()).total).to.equal(before.total - 1);
      const own = await service.get(`/v1/images/${id}`, { secret: caller.secret });
      expect(Date.parse(own.json.expires_at) - Date.now()).to.be.above(29 * 86_400_000);

      const other = await makePictures(service, caller.secret);
      await publish(other.id);
      const second = await publish(id);
      expect(second.json).to.deep.include({ id, ap_cost: 0, license_token: first.json.license_token });
      expect(second.json.published_at > first.json.published_at).to.equal(true);
      expect((await idsOf())[0]).to.equal(id);
      expect((await service.get(`/v1/images/gallery/${id}`)).status).to.equal(200);
    });

    for (const [what, config, caching] of [
      ['behind proxies and without BASE_URL is nothing for caches', { proxyCount: 1 }, /^private, no-store$/],
      [
        'with BASE_URL is, and has its addresses',
        { proxyCount: 1, baseUrl: 'https://api.example' },
        /^public, max-age=\d+$/,
      ],
    ] as const) {
      it(what, async function () {
        this.timeout(30_000);
        const behind = await startTestService({ config });
        try {
          await makeImageModel(behind, { id: IMAGE_MODEL, provider: 'sandbox' });
          await makeGalleryPrice(behind);
          const { secret } = await behind.makeCaller();
          const { id } = await makePictures(behind, secret);
          await behind.post(`/v1/images/${id}/publish`, { secret });
          const headers = { 'x-forwarded-host': 'evil.example' };
          for (const path of ['/v1/images/gallery', '/v1/images/characters'])
            expect((await behind.get(path, { headers })).headers.get('cache-control')).to.match(caching);
          const { json } = await behind.get('/v1/images/gallery', { headers });
          expect(json.items[0].url).to.equal(
            `${'baseUrl' in config ? config.baseUrl : 'http://evil.example'}/v1/images/gallery/${id}`,
          );
        } finally {
          await behind.stop();
        }
      });
    }

    it('is not gone into deeper than 10,000', async () => {
      for (const path of ['/v1/images/gallery', '/v1/images/characters']) {
        expect((await service.get(`${path}?offset=10000`)).json).to.deep.include({
          items: [],
          offset: 10_000,
        });
        const { status, json } = await service.get(`${path}?offset=10001`);
        expect([status, json.error.code, json.param]).to.deep.equal([400, 'invalid_parameter', 'offset']);
      }
    });

    it('that was never published cannot be taken back', async () => {
      const { id } = await makePictures(service, caller.secret);
      expect((await withdraw(id)).status).to.equal(404);
    });

    it('that is deleted is taken back too, and 410 for everybody', async () => {
      const { id } = await makePictures(service, caller.secret);
      await publish(id);
      const before = await page();
      await service.call('DELETE', `/v1/images/${id}`, { secret: caller.secret });
      const answer = await service.get(`/v1/images/gallery/${id}`);
      expect(answer.status).to.equal(410);
      expect(answer.json.error.code).to.equal('gone');
      expect(answer.headers.get('cache-control')).to.equal(null);
      const after = await page();
      expect(after.total).to.equal(before.total - 1);
      expect(await idsOf()).to.not.include(id);
      expect((await publish(id)).json.error.code).to.equal('gone');
    });

    it('is served below /v2.5 too', async () => {
      const { id } = await makePictures(service, caller.secret);
      expect((await service.post(`/v2.5/images/${id}/publish`, { secret: caller.secret })).status).to.equal(
        200,
      );
      expect((await service.get(`/v2.5/images/gallery/${id}`)).status).to.equal(200);
      expect((await service.get('/v2.5/images/gallery')).json.items[0].id).to.equal(id);
    });
  });

  it('takes no body but an empty one', async () => {
    const { id } = await makePictures(service, caller.secret);
    const path = `/v1/images/${id}/publish`;
    const { secret } = caller;
    const known = await service.post(path, { secret, body: { price: 0 } });
    expect(known.json).to.include({ param: 'price' });
    expect(known.json.error.code).to.equal('unsupported_parameter');
    expect((await service.post(path, { secret, body: '{' })).json.error.code).to.equal('invalid_json');
    expect((await service.post(path, { secret, body: {} })).status).to.equal(200);
  });
});

const quiet = { info() {}, warn() {}, error() {} } as never;
