/** What every response carries, whatever its route: the request id, the rate fields, `Allow`; and paths that lead nowhere. */
import { request } from 'node:http';
import { connect } from 'node:net';
import { expect } from 'chai';
import { afterEach, describe, it } from 'mocha';
import { type Answer, chatBody, MODEL, startTestService, withTestService } from '../helpers/service.ts';

const CHAT = '/v1/chat/completions';
const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('responses', () => {
  const service = withTestService();
  afterEach(() => service.upstream.reset());

  /** Everything that comes back until the connection ends. */
  async function said(sent: string): Promise<string> {
    const socket = connect(Number(new URL(service.urls[0] ?? '').port), '127.0.0.1');
    socket.end(sent);
    let text = '';
    for await (const part of socket) text += String(part);
    return text;
  }

  it('to an unknown path are 404, whatever the method', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const answer = await service.call(method, '/v1/chat/completion');
      expect([answer.status, answer.json.error.code]).to.deep.equal([404, 'not_found']);
      expect(answer.headers.has('allow')).to.equal(false);
    }
  });

  it('to a known path with another method are 405 with Allow', async () => {
    const cases = [
      ['GET', CHAT, ['POST']],
      ['DELETE', CHAT, ['POST']],
      ['OPTIONS', CHAT, ['POST']],
      ['POST', '/v1/models', ['GET', 'HEAD']],
      ['PUT', '/v1/requests/01900000-0000-7000-8000-000000000000', ['GET', 'HEAD']],
      ['GET', '/v1/requests/01900000-0000-7000-8000-000000000000/cancel', ['POST']],
    ] as const;
    for (const [method, path, allowed] of cases) {
      const answer = await service.call(method, path);
      expect([answer.status, answer.json?.error.code], `${method} ${path}`).to.deep.equal([405, 'not_found']);
      expect(answer.headers.get('allow')?.split(', ')).to.have.members(allowed);
    }
  });

  it('carry x-svc-request-id, each its own, whatever became of the request', async () => {
    const { secret } = await service.makeCaller();
    const { secret: other } = await service.makeCaller({ scopes: ['tts'] });
    const etag = (await service.get('/v1/models')).headers.get('etag') ?? '';
    const answers: readonly (readonly [number, Promise<Answer>])[] = [
      [200, service.get('/')],
      [200, service.get('/health')],
      [200, service.get('/health/stats')],
      [200, service.call('HEAD', '/v1/models')],
      [304, service.get('/v1/models', { headers: { 'if-none-match': etag } })],
      [404, service.get('/nothing')],
      [404, service.get('/v1/requests/%E0%A4%A', { secret })],
      [404, service.get('/v1/models/%E0%A4%A')],
      [405, service.call('DELETE', CHAT)],
      [401, service.post(CHAT)],
      [403, service.chat({ secret: other })],
      [400, service.post(CHAT, { secret, body: '{' })],
      [200, service.chat({ secret })],
      [200, service.chat({ secret }, { stream: true })],
      [202, service.chat({ secret }, {}, { headers: { prefer: 'respond-async' } })],
      [200, service.get('/v1/requests', { secret })],
    ];
    const ids = new Set<string>();
    for (const [index, [status, answering]] of answers.entries()) {
      const answer = await answering;
      expect(answer.status, `answer ${index}`).to.equal(status);
      const id = answer.headers.get('x-svc-request-id');
      expect(id, `answer ${index}`).to.match(UUID_7);
      ids.add(id ?? '');
    }
    expect(ids.size).to.equal(answers.length);
  });

  for (const [what, sent, status, param] of [
    ['what is no HTTP at all', 'HELLO\r\n\r\n', 400, 'request'],
    ['HTTP without a Host', 'GET /v1/models HTTP/1.1\r\n\r\n', 400, 'Host'],
    ['an expectation that means nothing', 'GET / HTTP/1.1\r\nHost: x\r\nExpect: foo\r\n\r\n', 417, 'Expect'],
  ] as const) {
    it(`to ${what} are an envelope too`, async () => {
      const text = await said(sent);
      expect(text).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(text).to.match(/x-svc-request-id: [0-9a-f-]{36}\r\n/i);
      expect(text).to.match(/connection: close\r\n/i);
      expect(text).to.match(/"code":"invalid_parameter"/);
      expect(text).to.include(`"param":"${param}"`);
    });
  }

  it('to HTTP of before the Host, and to an expectation that means something, are as ever', async () => {
    expect(await said('GET /v1/models HTTP/1.0\r\n\r\n')).to.match(/^HTTP\/1\.1 200 /);
    const waiting =
      'POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
    expect(await said(waiting)).to.match(/^HTTP\/1\.1 100 /);
  });

  it('with headers too large are an envelope too', async () => {
    const { port } = new URL(service.urls[0] ?? '');
    const answer = await new Promise<{ status: number | undefined; id: unknown; text: string }>(
      (resolve, reject) => {
        const sent = request(
          { port, path: '/', headers: { 'x-padding': 'x'.repeat(20_000) } },
          (response) => {
            let text = '';
            response.on('data', (part) => {
              text += String(part);
            });
            response.on('end', () =>
              resolve({ status: response.statusCode, id: response.headers['x-svc-request-id'], text }),
            );
          },
        );
        sent.on('error', reject);
        sent.end();
      },
    );
    expect(answer.status).to.equal(431);
    expect(answer.id).to.match(UUID_7);
    expect(JSON.parse(answer.text)).to.deep.include({ param: 'headers' });
  });

  describe('to keyed requests', () => {
    const RATE = 50;

    it('carry the rate fields, whatever became of the request', async () => {
      const ratePerMinute = RATE;
      const keyed = async (options: Parameters<typeof service.makeCaller>[0] = {}) =>
        (await service.makeCaller({ ratePerMinute, ...options })).secret;
      const cases: readonly (readonly [number, string, Promise<Answer>])[] = [
        [200, 'whole', service.chat({ secret: await keyed() })],
        [200, 'streamed', service.chat({ secret: await keyed() }, { stream: true })],
        [
          202,
          'accepted',
          service.chat({ secret: await keyed() }, {}, { headers: { prefer: 'respond-async' } }),
        ],
        [400, 'bad JSON', service.post(CHAT, { secret: await keyed(), body: '{' })],
        [404, 'no such model', service.chat({ secret: await keyed() }, { model: 'no-such' })],
        [403, 'model not allowed', service.chat({ secret: await keyed({ allowedModels: [] }) })],
        [402, 'no AP', service.chat({ secret: await keyed({ balanceAp: 1 }) })],
        [403, 'scope', service.chat({ secret: await keyed({ scopes: ['tts'] }) })],
        [403, 'account', service.chat({ secret: await keyed({ kind: 'enterprise' }) })],
        [200, 'credits', service.get('/v1/credits', { secret: await keyed() })],
        [404, 'no credits', service.get('/v1/credits', { secret: await keyed({ balanceAp: 0 }) })],
        [200, 'key', service.get('/v1/key', { secret: await keyed() })],
        [404, 'no request', service.get('/v1/requests/1', { secret: await keyed() })],
        [404, 'no request', service.post('/v1/requests/1/cancel', { secret: await keyed() })],
      ];
      for (const [status, title, answering] of cases) {
        const answer = await answering;
        expect(answer.status, title).to.equal(status);
        expect(answer.headers.get('ratelimit-policy'), title).to.equal(`"default";q=${RATE};w=60`);
        expect(answer.headers.get('ratelimit'), title).to.match(
          new RegExp(`^"default";r=${RATE - 1};t=\\d+$`),
        );
      }
    });

    it('count down, and say in `Retry-After` when to come again', async () => {
      const { secret } = await service.makeCaller({ ratePerMinute: 3 });
      const seen: string[] = [];
      for (let index = 0; index < 5; index += 1) {
        const { status, headers } = await service.get('/v1/key', { secret });
        const fields = /^"default";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '');
        expect(Number(fields?.[2])).to.be.within(1, 60);
        if (status === 429) expect(headers.get('retry-after')).to.equal(fields?.[2]);
        seen.push(`${status} ${fields?.[1]}`);
      }
      expect(seen).to.deep.equal(['200 2', '200 1', '200 0', '429 0', '429 0']);
    });

    it('show no secret and may not be cached', async () => {
      const { secret } = await service.makeCaller();
      for (const path of ['/v1/credits', '/v1/key', '/v1/requests']) {
        const answer = await service.get(path, { secret });
        expect(answer.text).to.not.include(secret);
        expect(answer.headers.get('cache-control')).to.equal('private, no-store');
      }
    });
  });

  describe('of public reads', () => {
    it('carry an ETag and a short Cache-Control, and are 304 where nothing changed', async () => {
      for (const path of ['/', '/v1/models', `/v1/models/${MODEL}`, '/v1/chat/models', '/health/stats']) {
        const first = await service.get(path);
        expect(first.headers.get('cache-control'), path).to.match(/^public, max-age=\d{1,3}$/);
        const again = await service.get(path, {
          headers: { 'if-none-match': first.headers.get('etag') ?? '' },
        });
        expect([again.status, again.text], path).to.deep.equal([304, '']);
      }
    });

    it('say where the endpoints are listed, in the answer that finds none', async () => {
      for (const [language, words] of [
        ['en', 'GET / lists the endpoints.'],
        ['ja', 'エンドポイントの一覧は GET / で確認できます。'],
      ] as const) {
        const { json } = await service.get('/openapi.json', { headers: { 'accept-language': language } });
        expect(json.error.message).to.contain(words);
      }
      expect((await service.get('/')).json.endpoints).to.include('GET /');
    });

    it('list no endpoint that is not there', async () => {
      const { endpoints } = (await service.get('/')).json;
      expect(endpoints).to.include(`POST ${CHAT}`);
      for (const endpoint of endpoints as string[]) {
        const [method = '', path = ''] = endpoint.split(' ');
        const answer = await service.call(
          method,
          path.replace(/\{\w+\}/, 'x'),
          method === 'POST' ? { body: chatBody() } : {},
        );
        expect(answer.json?.error?.code, endpoint).to.not.equal(path.includes('{') ? undefined : 'not_found');
      }
    });
  });
});

describe('an ingress that stops', () => {
  it('does not wait for connections that were opened in advance and never used', async () => {
    const service = await startTestService();
    const socket = connect(Number(new URL(service.urls[0] ?? '').port), '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    // answered after the socket above was taken in
    await service.get('/');
    const before = performance.now();
    await service.stop();
    expect(performance.now() - before).to.be.below(5000);
    socket.destroy();
  }).timeout(30_000);
});
