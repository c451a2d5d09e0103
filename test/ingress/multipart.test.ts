/** Forms: what is in them, every limit at the byte that breaks it, and broken ones refused. */
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { ServiceError } from '../../core/errors.ts';
import type { Context } from '../../ingress/context.ts';
import { type Form, readForm } from '../../ingress/multipart.ts';
import { BOUNDARY, FORM_HEADERS, form, formPart } from '../helpers/form.ts';

const LIMITS = { maxBytes: 4000, maxFileBytes: 1000, maxFiles: 2, maxFields: 3 };

describe('forms', () => {
  let server: Server;
  let url: string;

  before('a server that reads one form a request', async () => {
    server = createServer((req, res) => {
      const ctx = { req, res, headers: req.headers, set: res.setHeader.bind(res) } as unknown as Context;
      readForm(ctx, LIMITS).then(
        (read: Form) => res.end(JSON.stringify({ ...read, files: read.files.map(viewOf) })),
        (error: unknown) => {
          if (!(error instanceof ServiceError)) throw error;
          res.end(JSON.stringify({ code: error.code, ...error.details }));
        },
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const viewOf = ({ name, bytes }: { name: string; bytes: Buffer }) => ({
    name,
    bytes: bytes.toString('latin1'),
  });
  async function send(body: Buffer, headers: Record<string, string> = FORM_HEADERS): Promise<unknown> {
    return (await fetch(url, { method: 'POST', headers, body })).json();
  }
  /** In writes of their own, without a length. */
  function sendParts(parts: readonly Buffer[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const sent = httpRequest(url, { method: 'POST', agent: false, headers: FORM_HEADERS }, (response) => {
        let text = '';
        response.on('data', (part: Buffer) => {
          text += part.toString();
        });
        response.once('end', () => resolve(JSON.parse(text)));
      });
      sent.once('error', reject);
      for (const part of parts) sent.write(part);
      sent.end();
    });
  }

  it('give their fields and files in order, byte for byte', async () => {
    const file = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const body = form({ prompt: 'ein Schloß ✓', n: '2' }, { 'image[]': file, mask: Buffer.from('\r\n--') });
    const whole = {
      fields: [
        ['prompt', 'ein Schloß ✓'],
        ['n', '2'],
      ],
      files: [
        { name: 'image[]', bytes: file.toString('latin1') },
        { name: 'mask', bytes: '\r\n--' },
      ],
    };
    expect(await send(body)).to.deep.equal(whole);
    // wherever it is cut on its way
    for (const size of [1, 7, 64])
      expect(
        await sendParts(
          Array.from({ length: Math.ceil(body.length / size) }, (_, n) =>
            body.subarray(n * size, (n + 1) * size),
          ),
        ),
        `parts of ${size}`,
      ).to.deep.equal(whole);
  });

  it('may be as large as the limits, and not a byte larger', async () => {
    expect(await send(form({}, { a: Buffer.alloc(1000) }))).to.have.property('files');
    expect(await send(form({}, { a: Buffer.alloc(1001) }))).to.deep.equal({
      code: 'invalid_parameter',
      param: 'a',
      max_bytes: 1000,
    });
  });

  it('are refused by their length before they are read, and without one when it is passed', async () => {
    const refusal = { code: 'invalid_parameter', param: 'body', max_bytes: 4000 };
    expect(await send(form({ prompt: 'x'.repeat(4000) }))).to.deep.equal(refusal);
    expect(await sendParts([form({ prompt: 'x'.repeat(4000) })])).to.deep.equal(refusal);
  });

  it('have no more files and fields than allowed', async () => {
    const bytes = Buffer.from('x');
    expect(await send(form({}, { a: bytes, b: bytes, c: bytes }))).to.deep.equal({
      code: 'invalid_parameter',
      param: 'body',
      max_files: 2,
    });
    expect(await send(form({ a: '1', b: '2', c: '3', d: '4' }))).to.deep.equal({
      code: 'invalid_parameter',
      param: 'body',
      max_fields: 3,
    });
  });

  const whole = form({ prompt: 'x' }, { a: Buffer.from('abc') });
  const broken: readonly [string, Buffer, Record<string, string>?][] = [
    ['empty', Buffer.alloc(0)],
    ['without a field', Buffer.from(`--${BOUNDARY}--\r\n`)],
    ['no form at all', Buffer.from('{"prompt": "x"}')],
    ['cut in a header', whole.subarray(0, 40)],
    ['cut in a file', whole.subarray(0, whole.indexOf('abc') + 2)],
    ['cut before its end', formPart('name="prompt"', Buffer.from('x'))],
    ['a field without a name', Buffer.concat([formPart('filename="x"', Buffer.from('x')), form({})])],
    ['without a boundary', whole, { 'content-type': 'multipart/form-data; charset=utf-8' }],
    ['compressed', whole, { ...FORM_HEADERS, 'content-encoding': 'gzip' }],
  ];
  for (const [what, body, headers] of broken) {
    it(`that are broken are refused: ${what}`, async () => {
      expect(await send(body, headers)).to.deep.equal({ code: 'invalid_json' });
    });
  }

  it('whose caller leaves in the middle leave nothing behind that would wait', async () => {
    const closed = new Promise<void>((resolve) => {
      server.once('request', (req) => req.once('close', () => resolve()));
    });
    const sent = httpRequest(url, { method: 'POST', agent: false, headers: FORM_HEADERS });
    sent.on('error', () => {});
    sent.write(whole.subarray(0, 60), () => sent.destroy());
    await closed;
    expect(await send(whole)).to.have.property('files');
  });
});
