/** POST /v1/images/inspect over HTTP: what it takes, what it answers, and what it refuses. */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { before, describe, it } from 'mocha';
import sharp from 'sharp';
import { makeSigner } from '../../core/provenance/signer.ts';
import { flipped, makePicture, pictureToSign, placeOf } from '../helpers/c2pa.ts';
import { floodBody, SOCKET_BUFFERS_BYTES } from '../helpers/flood.ts';
import { BOUNDARY, FORM_HEADERS, form, formPart } from '../helpers/form.ts';
import { makePng, pngChunk } from '../helpers/pictures.ts';
import { type Answer, withTestService } from '../helpers/service.ts';

const INSPECT = '/v1/images/inspect';
const MEBIBYTE = 1024 * 1024;
const LIMIT_BYTES = 25 * MEBIBYTE;
/** Over the limit, and all of it on its way when the answer comes. */
const SLIGHTLY_BYTES = 128 * 1024;

describe('inspecting an image', () => {
  const service = withTestService({ workers: 0 });
  let signed: Buffer;
  before(async () => {
    signed = await makeSigner(service.config).sign(await makePicture('png'), pictureToSign('png'));
  });

  const post = (body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    service.post(INSPECT, { body, headers: { 'content-type': 'image/png', ...headers } });
  const refusal = ({ status, json }: Answer) => {
    const { error, ...siblings } = json;
    return [status, error?.code, siblings];
  };

  it('needs no key, takes the bytes whatever their content type, and tells all that is known', async () => {
    for (const type of [
      'image/png',
      'image/jpeg',
      'application/octet-stream',
      'application/x-www-form-urlencoded',
    ]) {
      const answer = await post(signed, { 'content-type': type });
      expect(answer.status, type).to.equal(200);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
      expect(answer.json).to.deep.include({
        has_manifest: true,
        format: 'png',
        title: null,
        created_at: '2026-05-04T03:02:01.000Z',
        hashes: { valid: true },
        valid: true,
        problems: [],
      });
      expect(answer.json.signature).to.have.all.keys(
        'valid',
        'algorithm',
        'issuer',
        'subject',
        'signed_by_this_service',
      );
      expect(answer.json.signature.signed_by_this_service).to.equal(true);
      expect(answer.text).to.not.match(/trusted/i);
    }
  });

  it('takes the one file of a form, by whatever name', async () => {
    for (const name of ['image', 'file', 'photo']) {
      const answer = await post(form({}, { [name]: signed }), FORM_HEADERS);
      expect([answer.status, answer.json.valid], name).to.deep.equal([200, true]);
    }
  });

  it('is under the address of the image client too', async () => {
    const answer = await service.post('/v2.5/images/inspect', { body: signed });
    expect([answer.status, answer.json.valid]).to.deep.equal([200, true]);
  });

  it('answers for a picture without a manifest', async () => {
    for (const format of ['png', 'jpeg', 'webp'] as const) {
      const answer = await post(await sharp(signed).toFormat(format).toBuffer());
      expect(answer.status).to.equal(200);
      expect(answer.json).to.deep.include({ has_manifest: false, format, valid: null, problems: [] });
    }
  });

  it('reports what was tampered with, and never fails over it', async () => {
    const { start, length } = placeOf(signed);
    for (const [bytes, code] of [
      [flipped(signed, start + length + 100), 'assertion.dataHash.mismatch'],
      [flipped(signed, signed.indexOf('xmp:iid:')), 'claimSignature.mismatch'],
      [signed.subarray(0, -20), 'file.malformed'],
      [makePng(4, 4, { before: [pngChunk('caBX', randomBytes(500))] }), 'manifest.malformed'],
    ] as const) {
      const answer = await post(bytes);
      expect([answer.status, answer.json.valid]).to.deep.equal([200, false]);
      expect(answer.json.problems.map((problem: { code: string }) => problem.code)).to.include(code);
    }
  });

  it('refuses what is no picture, nothing, more than one, and fields', async () => {
    const allowed = ['png', 'jpeg', 'webp'];
    const cases: readonly (readonly [Promise<Answer>, number, string, object])[] = [
      [post('hello'), 400, 'unsupported_format', { param: 'body', allowed }],
      [
        post('{}', { 'content-type': 'application/json' }),
        400,
        'unsupported_format',
        { param: 'body', allowed },
      ],
      [post(''), 400, 'invalid_parameter', { param: 'body' }],
      [
        post(form({}, { image: Buffer.from('GIF89a') }), FORM_HEADERS),
        400,
        'unsupported_format',
        { param: 'image', allowed },
      ],
      [
        post(form({}, { image: Buffer.alloc(0) }), FORM_HEADERS),
        400,
        'invalid_parameter',
        { param: 'image' },
      ],
      [post(form({ image: 'text' }), FORM_HEADERS), 400, 'unsupported_parameter', { param: 'image' }],
      [
        post(form({ model: 'x' }, { image: signed }), FORM_HEADERS),
        400,
        'unsupported_parameter',
        { param: 'model' },
      ],
      [
        post(form({}, { a: signed, b: signed }), FORM_HEADERS),
        400,
        'invalid_parameter',
        { param: 'body', max_files: 1 },
      ],
      [post(form({}).subarray(0, 5), FORM_HEADERS), 400, 'invalid_json', {}],
      [post(formPart('name="image"; filename="x"', signed), FORM_HEADERS), 400, 'invalid_json', {}],
      [post(signed, { 'content-encoding': 'gzip' }), 400, 'invalid_json', {}],
    ];
    for (const [index, [answering, status, code, siblings]] of cases.entries()) {
      expect(refusal(await answering), `case ${index}`).to.deep.equal([status, code, siblings]);
    }
  });

  it('takes 25 MB and not a byte more, raw or in a form', async () => {
    const padding = LIMIT_BYTES - signed.length;
    const largest = Buffer.concat([signed, Buffer.alloc(padding)]);
    const tooLarge = Buffer.concat([largest, Buffer.alloc(1)]);
    const startedAt = performance.now();
    const raw = await post(largest);
    expect([raw.status, raw.json.valid, raw.json.signature.valid]).to.deep.equal([200, false, true]);
    const inForm = await post(form({}, { image: largest }), FORM_HEADERS);
    expect([inForm.status, inForm.json.valid]).to.deep.equal([200, false]);
    expect(performance.now() - startedAt).to.be.below(10_000);
    expect(refusal(await post(tooLarge))).to.deep.equal([
      400,
      'invalid_parameter',
      { param: 'body', max_bytes: LIMIT_BYTES },
    ]);
    expect(refusal(await post(form({}, { image: tooLarge }), FORM_HEADERS))).to.deep.equal([
      400,
      'invalid_parameter',
      { param: 'image', max_bytes: LIMIT_BYTES },
    ]);
  }).timeout(60_000);

  it('stops reading at the limit', async () => {
    const file = formPart('name="image"; filename="x"', Buffer.alloc(0)).subarray(0, -2);
    for (const [type, begin] of [
      ['image/png', signed],
      [`multipart/form-data; boundary=${BOUNDARY}`, file],
    ] as const) {
      const headers = [`Content-Type: ${type}`, 'Transfer-Encoding: chunked'];
      const [origin = ''] = service.urls;
      const { takenBytes } = await floodBody(origin, INSPECT, headers, { begin });
      expect(takenBytes, type).to.be.below(LIMIT_BYTES + SOCKET_BUFFERS_BYTES);
      const maxSentBytes = LIMIT_BYTES + SLIGHTLY_BYTES;
      const { text } = await floodBody(origin, INSPECT, headers, { begin, maxSentBytes });
      expect(text, type).to.match(/^HTTP\/1\.1 400 /);
      expect(text).to.include(`"max_bytes":${LIMIT_BYTES}`);
    }
  }).timeout(60_000);

  it('leaves nothing behind', async () => {
    const traces = await service.traces();
    await post(signed);
    await post('hello');
    expect(await service.traces()).to.deep.equal(traces);
  });
});
