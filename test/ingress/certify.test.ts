/** Certificates of pictures over HTTP, the licenses of published and certified ones, and certificates of before this service. */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { expect } from 'chai';
import { before, beforeEach, describe, it } from 'mocha';
import { selectOne } from '../helpers/database.ts';
import { GALLERY_PRICE_AP, makeGalleryPrice, makePictures, PICTURE_AP } from '../helpers/gallery.ts';
import { IMAGE_MODEL, makeImageModel } from '../helpers/image-models.ts';
import { type TestCaller, withTestService } from '../helpers/service.ts';

const CERT_URL = 'https://certs.example';

describe('certifying a picture', () => {
  const service = withTestService({ config: { certUrl: CERT_URL } });
  let caller: TestCaller;

  before('models', async () => {
    await makeImageModel(service, { id: IMAGE_MODEL, provider: 'sandbox' });
    await makeGalleryPrice(service);
  });
  beforeEach(async () => {
    caller = await service.makeCaller({ ratePerMinute: 1000 });
  });

  const certify = (id: string, body: object | undefined = undefined, headers: Record<string, string> = {}) =>
    service.post(`/v1/images/${id}/certify`, {
      secret: caller.secret,
      headers,
      ...(body === undefined ? {} : { body }),
    });
  const certOf = (certId: string) =>
    selectOne<Record<string, unknown>>(
      service.pool,
      `select entry_id, source, status, title, holder_name, event, to_char(issued_on, 'YYYY-MM-DD') as issued_on, details,
         image_id, issuer_account_id, issuer_key_id, charge_request_id, encode(record_sha256, 'hex') as record_sha256
         from app.certs where cert_id = $1`,
      [certId],
    );
  const fileOf = async (id: string) => {
    const answer = await fetch(`${service.urls[0]}/v1/images/file/${id}`, {
      headers: { authorization: `Bearer ${caller.secret}` },
    });
    return createHash('sha256')
      .update(Buffer.from(await answer.arrayBuffer()))
      .digest('hex');
  };

  it('costs the gallery-submit price, and answers with the certificate', async () => {
    const { id, candidates } = await makePictures(service, caller.secret);
    const answer = await certify(id, { title: 'Dusk', holder_name: '山田 花子' });
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('x-svc-ap-cost')).to.equal(String(GALLERY_PRICE_AP));
    const { cert_id: certId, license_token: token, record_sha256: hash, ...rest } = answer.json;
    const today = new Date().toISOString().slice(0, 10);
    expect(rest).to.deep.equal({
      object: 'certificate',
      cert_url: `${CERT_URL}/c/${certId}`,
      status: 'issued',
      entry_id: candidates[0],
      image_id: id,
      title: 'Dusk',
      holder_name: '山田 花子',
      issued_on: today,
      ap_cost: GALLERY_PRICE_AP,
    });
    expect(token).to.match(/^lic_[A-Za-z0-9_-]{32}$/);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([PICTURE_AP, GALLERY_PRICE_AP]);
    expect(await certOf(certId)).to.deep.include({
      source: 'create',
      status: 'issued',
      event: null,
      issuer_account_id: caller.accountId,
      issuer_key_id: caller.keyId,
      charge_request_id: answer.headers.get('x-svc-request-id'),
      record_sha256: hash,
    });
  });

  it('has a hash that anybody can compute again from the record', async () => {
    const { id } = await makePictures(service, caller.secret);
    const { json } = await certify(id, { title: 'Dawn' });
    const row = await certOf(json.cert_id);
    const record = {
      cert_id: json.cert_id,
      entry_id: row.entry_id,
      source: row.source,
      title: row.title,
      holder_name: row.holder_name,
      event: row.event,
      issued_on: row.issued_on,
      details: row.details,
      image_id: row.image_id,
      issuer: row.issuer_account_id,
    };
    expect((row.details as { image_sha256: string }).image_sha256).to.equal(await fileOf(id));
    const hash = createHash('sha256')
      .update(canonicalize(record) ?? '')
      .digest('hex');
    expect(json.record_sha256).to.equal(hash);
  });

  it('needs no body, and no title', async () => {
    const { id } = await makePictures(service, caller.secret);
    expect((await certify(id)).json).to.include({ status: 'issued', title: null, holder_name: null });
  });

  it('twice is 409, by whichever id, and charged once', async () => {
    const { id, candidates } = await makePictures(service, caller.secret);
    await certify(id);
    for (const one of [id, candidates[0] ?? '']) {
      const { status, json } = await certify(one, { title: 'again' });
      expect(status).to.equal(409);
      expect(json.error.code).to.equal('entry_already_certified');
    }
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([PICTURE_AP, GALLERY_PRICE_AP]);
  });

  it('by thirty calls at once makes one certificate and one charge', async () => {
    const { id } = await makePictures(service, caller.secret);
    const answers = await Promise.all(Array.from({ length: 30 }, () => certify(id)));
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    expect(answers.filter(({ status }) => status === 409)).to.have.length(29);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([PICTURE_AP, GALLERY_PRICE_AP]);
  });

  it('of several candidates of one generation at once ends in one that is selected', async () => {
    const { id, candidates } = await makePictures(service, caller.secret, { n: 4 });
    const answers = await Promise.all(candidates.map((candidate) => certify(candidate)));
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200]);
    const { selected } = await selectOne<{ selected: number }>(
      service.pool,
      'select count(*) as selected from app.assets where request_id = $1 and is_selected',
      [id],
    );
    expect(selected).to.equal(1);
  });

  it('makes the candidate the one that the generation’s address serves', async () => {
    const { id, candidates } = await makePictures(service, caller.secret, { n: 3 });
    const third = candidates[2] ?? '';
    expect(await fileOf(id)).to.equal(await fileOf(candidates[0] ?? ''));
    const { json } = await certify(id, { candidate_id: third });
    expect(json).to.include({ image_id: third, entry_id: third });
    expect(await fileOf(id)).to.equal(await fileOf(third));
    const published = await service.post(`/v1/images/${id}/publish`, { secret: caller.secret });
    expect(published.json).to.include({ id: third, license_token: json.license_token });
  });

  it('takes a candidate of that generation only', async () => {
    const one = await makePictures(service, caller.secret, { n: 2 });
    const other = await makePictures(service, caller.secret, { n: 2 });
    const { status, json } = await certify(one.id, { candidate_id: other.candidates[0] });
    expect(status).to.equal(400);
    expect(json.param).to.equal('candidate_id');
  });

  it('under an Idempotency-Key gives the first answer again', async () => {
    const { id } = await makePictures(service, caller.secret);
    const headers = { 'idempotency-key': 'certify it' };
    const first = await certify(id, { title: 'one' }, headers);
    const again = await certify(id, { title: 'one' }, headers);
    expect(again.json).to.deep.equal(first.json);
    expect(again.headers.get('idempotency-replayed')).to.equal('true');
    const other = await certify(id, { title: 'two' }, headers);
    expect(other.json.error.code).to.equal('idempotency_conflict');
  });

  it('of another account’s picture is 404, of a deleted one 410', async () => {
    const { id } = await makePictures(service, caller.secret);
    const other = await service.makeCaller();
    const answer = await service.post(`/v1/images/${id}/certify`, { secret: other.secret });
    expect(answer.json.error.code).to.equal('not_found');
    await service.call('DELETE', `/v1/images/${id}`, { secret: caller.secret });
    expect((await certify(id)).json.error.code).to.equal('gone');
  });

  it('that cannot be paid leaves nothing', async () => {
    caller = await service.makeCaller({ balanceAp: PICTURE_AP + GALLERY_PRICE_AP - 1 });
    const { id, candidates } = await makePictures(service, caller.secret);
    const before = await service.traces();
    expect((await certify(id)).json.error.code).to.equal('insufficient_ap');
    expect(await service.traces()).to.deep.equal(before);
    const { left } = await selectOne<{ left: number }>(
      service.pool,
      `select (select count(*) from app.certs where entry_id = $1)
            + (select count(*) from app.licenses where asset_id::text = $1) as left`,
      [candidates[0]],
    );
    expect(left).to.equal(0);
  });

  for (const [what, body, param] of [
    ['a title that is too long', { title: 'x'.repeat(201) }, 'title'],
    ['a name with a line break', { holder_name: 'a\nb' }, 'holder_name'],
    ['a candidate that is no id', { candidate_id: 'x' }, 'candidate_id'],
  ] as const) {
    it(`refuses ${what}`, async () => {
      const { id } = await makePictures(service, caller.secret);
      const { status, json } = await certify(id, body);
      expect(status).to.equal(400);
      expect(json.param).to.equal(param);
    });
  }

  describe('its license', () => {
    const licenseOf = (token: string) => service.get(`/v1/images/license/${token}`);

    it('says what is licensed, and nothing of a person', async () => {
      const { id } = await makePictures(service, caller.secret);
      const { json } = await certify(id, { holder_name: 'Somebody' });
      const { status, headers, json: license, text } = await licenseOf(json.license_token);
      expect(status).to.equal(200);
      expect(headers.get('etag')).to.be.a('string');
      const { created_at: createdAt, licensed_at: licensedAt, terms, ...rest } = license;
      expect(rest).to.deep.equal({
        object: 'image.license',
        status: 'valid',
        image_id: id,
        model: IMAGE_MODEL,
        taken_back_at: null,
        character: null,
        content_type: 'image/png',
        sha256: await fileOf(id),
        cert_id: json.cert_id,
      });
      expect(Date.parse(createdAt)).to.be.at.most(Date.parse(licensedAt));
      expect(terms.text).to.have.all.keys('en', 'ja');
      for (const secret of ['Somebody', caller.accountId, caller.keyId]) expect(text).to.not.include(secret);
    });

    it('holds as long as the picture is published or certified', async () => {
      const { secret } = caller;
      const { id } = await makePictures(service, secret);
      const { license_token: token } = (await service.post(`/v1/images/${id}/publish`, { secret })).json;
      expect((await licenseOf(token)).json.status).to.equal('valid');
      await service.call('DELETE', `/v1/images/${id}/publish`, { secret });
      const taken = (await licenseOf(token)).json;
      expect(taken.status).to.equal('taken_back');
      expect(taken.taken_back_at).to.be.a('string');
      expect((await certify(id)).json.license_token).to.equal(token);
      expect((await licenseOf(token)).json.status).to.equal('valid');
      const { expires_at: expiresAt } = (await service.get(`/v1/images/${id}`, { secret })).json;
      expect(expiresAt, 'certified pictures are kept').to.equal(null);
      await service.call('DELETE', `/v1/images/${id}`, { secret });
      const deleted = (await licenseOf(token)).json;
      expect(deleted).to.include({ status: 'taken_back' });
      expect(deleted.sha256).to.equal(taken.sha256);
    });

    it('of an unknown token is 404', async () => {
      for (const token of [`lic_${'x'.repeat(32)}`, 'x', '%00'])
        expect((await licenseOf(token)).json.error.code).to.equal('not_found');
    });
  });

  describe('of before this service', () => {
    before('two certificates', () =>
      service.pool.query(
        `insert into app.legacy_certs (number, status, title, holder_name, issued_on, details)
           values (7, 'issued', 'Winner', 'A. Holder', '2019-05-01', '{"rank": 1}'), (8, 'revoked', null, null, null, '{}')`,
      ),
    );

    it('is verified by its number', async () => {
      const { status, json } = await service.get('/v1/images/cert/legacy-7');
      expect(status).to.equal(200);
      expect(json).to.deep.equal({
        object: 'legacy_certificate',
        id: 'legacy-7',
        status: 'issued',
        valid: true,
        title: 'Winner',
        holder_name: 'A. Holder',
        event: null,
        issued_on: '2019-05-01',
        details: { rank: 1 },
      });
      expect((await service.get('/v1/images/cert/legacy-8')).json).to.include({
        status: 'revoked',
        valid: false,
      });
    });

    it('is 404 where there is none', async () => {
      for (const id of ['legacy-9', 'legacy-07', 'legacy-', '7', `legacy-${'9'.repeat(30)}`])
        expect((await service.get(`/v1/images/cert/${id}`)).status, id).to.equal(404);
    });
  });
});
