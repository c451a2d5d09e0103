/** Bodies that are too large, too deep, or hold what not every layer likes: refused cleanly, or passed through whole. */
import { connect } from 'node:net';
import { expect } from 'chai';
import { afterEach, describe, it } from 'mocha';
import { floodBody, SOCKET_BUFFERS_BYTES } from '../helpers/flood.ts';
import { chatBody, DEFAULT_COST_AP, MODEL, type TestCaller, withTestService } from '../helpers/service.ts';

const CHAT = '/v1/chat/completions';
const MAX_BODY_BYTES = 256 * 1024;
describe('a request body', () => {
  const service = withTestService({ config: { maxBodyBytes: MAX_BODY_BYTES } });
  afterEach(() => service.upstream.reset());

  const flood = ({ secret }: TestCaller, lengthHeader: string) =>
    floodBody(service.urls[0] ?? '', CHAT, [
      `Authorization: Bearer ${secret}`,
      'Content-Type: application/json',
      lengthHeader,
    ]);

  it('over the limit is refused while it arrives, and the rest is not read', async () => {
    const caller = await service.makeCaller();
    const before = await service.traces();
    const { text, takenBytes } = await flood(caller, 'Transfer-Encoding: chunked');
    expect(text).to.match(/^HTTP\/1\.1 400 /);
    expect(text).to.match(/\r\nconnection: close\r\n/i);
    expect(text).to.include(`"max_bytes":${MAX_BODY_BYTES}`);
    expect(takenBytes).to.be.below(MAX_BODY_BYTES + SOCKET_BUFFERS_BYTES);
    expect(await service.traces()).to.deep.equal(before);
  });

  it('announced to be over the limit is refused before it arrives', async () => {
    const caller = await service.makeCaller();
    const { text, takenBytes } = await flood(caller, `Content-Length: ${1024 ** 3}`);
    expect(text).to.match(/^HTTP\/1\.1 400 /);
    expect(takenBytes).to.be.below(SOCKET_BUFFERS_BYTES);
  });

  it('over the limit reaches a usual client as an answer, not as a broken connection', async () => {
    const { secret } = await service.makeCaller();
    for (let round = 0; round < 5; round += 1) {
      const content = 'x'.repeat(MAX_BODY_BYTES * (1 + round * 8));
      const answer = await service.chat({ secret }, { messages: [{ role: 'user', content }] });
      expect([answer.status, answer.json]).to.deep.equal([
        400,
        { error: answer.json.error, param: 'body', max_bytes: MAX_BODY_BYTES },
      ]);
      expect(answer.json.error.code).to.equal('invalid_parameter');
    }
  });

  it('at the limit is taken', async () => {
    const caller = await service.makeCaller();
    const room =
      MAX_BODY_BYTES - JSON.stringify(chatBody({ messages: [{ role: 'user', content: '' }] })).length;
    const messages = [{ role: 'user', content: 'x'.repeat(room) }];
    expect((await service.chat(caller, { messages })).status).to.equal(200);
    expect(
      (await service.chat(caller, { messages: [{ role: 'user', content: 'x'.repeat(room + 1) }] })).status,
    ).to.equal(400);
  });

  it('whose sender goes away half-way leaves nothing', async () => {
    const caller = await service.makeCaller();
    const before = await service.traces();
    const socket = connect(Number(new URL(service.urls[0] ?? '').port), '127.0.0.1');
    await new Promise<void>((resolve) => {
      socket.write(
        `POST ${CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${caller.secret}\r\nContent-Length: 1000\r\n\r\n{"model":`,
        () => resolve(),
      );
    });
    socket.destroy();
    await service.get('/v1/key', { secret: caller.secret });
    expect(await service.traces()).to.deep.equal(before);
  });

  it('nested too deep is refused, in an open field too', async () => {
    const caller = await service.makeCaller();
    const before = await service.traces();
    const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
    const withTool = (parameters: string) =>
      JSON.stringify(
        chatBody({ tools: [{ type: 'function', function: { name: 'f', parameters: '@' } }] }),
      ).replace('"@"', parameters);
    const cases = ['['.repeat(100_000), nested(30_000), withTool(nested(30_000)), withTool(nested(2_000))];
    for (const body of cases) {
      const answer = await service.post(CHAT, { secret: caller.secret, body });
      expect(answer.status).to.equal(400);
      expect(answer.json.error.code).to.be.oneOf([
        'invalid_json',
        'invalid_parameter',
        'unsupported_parameter',
      ]);
    }
    expect(await service.traces()).to.deep.equal(before);
    const fine = await service.post(CHAT, { secret: caller.secret, body: withTool(nested(60)) });
    expect(fine.status).to.equal(200);
  });

  it('of very many values is refused before anything is made of them; commas and braces inside strings are no values', async () => {
    const caller = await service.makeCaller();
    const before = await service.traces();
    const many = (value: string, times: number) => `{"x":[${`${value},`.repeat(times)}0]}`;
    for (const body of [many('{}', 60_000), many('0', 120_000)]) {
      const answer = await service.post(CHAT, { secret: caller.secret, body });
      expect(answer.status).to.equal(400);
      expect(answer.json.error).to.include({ code: 'invalid_parameter' });
      expect(answer.json).to.include({ param: 'body', max_values: 100_000 });
    }
    expect(await service.traces()).to.deep.equal(before);
    const text = '{"[,]"\\'.repeat(20_000);
    const fine = await service.post(CHAT, {
      secret: caller.secret,
      body: chatBody({ messages: [{ role: 'user', content: text }] }),
    });
    expect(fine.status).to.equal(200);
  });

  it('that is not UTF-8, or says it is not, is refused: no prompt is altered and charged', async () => {
    const { secret } = await service.makeCaller();
    const before = await service.traces();
    const latin = Buffer.from(
      JSON.stringify(chatBody({ messages: [{ role: 'user', content: 'café' }] })),
      'latin1',
    );
    const picture = Buffer.from('{"model":"m","prompt":"café"}', 'latin1');
    const refused = [
      await service.post(CHAT, { secret, body: latin }),
      await service.post('/v1/images/generations', { secret, body: picture }),
      await service.chat(
        { secret },
        {},
        { headers: { 'content-type': 'application/json; charset=iso-8859-1' } },
      ),
      await service.chat(
        { secret },
        {},
        { headers: { 'content-type': 'application/json;charset="utf-16"' } },
      ),
    ];
    for (const answer of refused)
      expect([answer.status, answer.json.error.code]).to.deep.equal([400, 'invalid_json']);
    expect(await service.traces()).to.deep.equal(before);
    for (const charset of ['utf-8', 'UTF8', '"utf-8"', ' utf-8; x=y']) {
      const headers = { 'content-type': `application/json; charset=${charset}` };
      expect((await service.chat({ secret }, {}, { headers })).status, charset).to.equal(200);
    }
  });

  it('with unknown fields anywhere is refused with their path', async () => {
    const caller = await service.makeCaller();
    const cases: readonly (readonly [object, string])[] = [
      [{ frobnicate: 1 }, 'frobnicate'],
      [{ stream: true, stream_options: { include_usage: true, x: 1 } }, 'stream_options.x'],
      [{ messages: [{ role: 'user', content: 'a', mood: 'good' }] }, 'messages[0].mood'],
      [{ tools: [{ type: 'function', function: { name: 'f', y: 1 } }] }, 'tools[0].function.y'],
      [
        { response_format: { type: 'json_schema', json_schema: { name: 'n', z: 1 } } },
        'response_format.json_schema.z',
      ],
      [
        {
          messages: [
            {
              role: 'assistant',
              tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '', q: 1 } }],
            },
          ],
        },
        'messages[0].tool_calls[0].function.q',
      ],
      [{ tool_choice: { type: 'function', function: { name: 'f', w: 1 } } }, 'tool_choice.function.w'],
      [JSON.parse('{"__proto__": {"x": 1}}') as object, '__proto__'],
      [{ constructor: 1 }, 'constructor'],
    ];
    for (const [changes, param] of cases) {
      const body = { ...chatBody() };
      // own properties also where the name is `__proto__`
      for (const [name, value] of Object.entries(changes))
        Object.defineProperty(body, name, { value, enumerable: true });
      const answer = await service.post(CHAT, { secret: caller.secret, body });
      expect([answer.status, answer.json.error?.code, answer.json.param], param).to.deep.equal([
        400,
        'unsupported_parameter',
        param,
      ]);
    }
    expect(service.upstream.count()).to.equal(0);
  });

  it('with unknown roles or types is refused with the path of the tag', async () => {
    const caller = await service.makeCaller();
    const cases: readonly (readonly [object, string])[] = [
      [{ messages: [{ role: 'wizard', content: 'a' }] }, 'messages[0].role'],
      [{ messages: [{ content: 'a' }] }, 'messages[0].role'],
      [{ messages: [{ role: 'user', content: [{ type: 'smell' }] }] }, 'messages[0].content[0].type'],
      [{ tools: [{ type: 'magic' }] }, 'tools[0].type'],
      [{ messages: [] }, 'messages'],
      [{ messages: [null] }, 'messages[0]'],
      [{ stop: [1] }, 'stop[0]'],
    ];
    for (const [changes, param] of cases) {
      const answer = await service.chat(caller, changes);
      expect([answer.status, answer.json.error?.code, answer.json.param], param).to.deep.equal([
        400,
        'invalid_parameter',
        param,
      ]);
    }
  });

  const PECULIAR: Readonly<Record<string, string>> = {
    'NUL characters': '\\u0000 and \\u0000',
    'a lone high surrogate': 'x \\ud83d y',
    'a lone low surrogate': '\\ude00',
    'surrogates the wrong way round': '\\ude00\\ud83d',
    'control characters and separators': '\\u0001\\u001f\\u007f\\u2028\\u2029\\ufeff',
    noncharacters: '\\uffff\\ufffe',
    'emoji, escaped and not': '\\ud83d\\ude00 😀 👩‍👩‍👧',
  };
  for (const [title, escaped] of Object.entries(PECULIAR)) {
    it(`with ${title} in prompts and answers passes through, whole and streamed`, async () => {
      const text = JSON.parse(`"${escaped}"`) as string;
      const caller = await service.makeCaller();
      const tools = [
        { type: 'function', function: { name: 'f', parameters: { description: text, [text]: {} } } },
      ];
      const changes = { messages: [{ role: 'user', content: text }], user: text, tools };
      service.upstream.program(MODEL, { content: text, chunks: [text, text] });
      const whole = await service.chat(caller, changes);
      expect(whole.status).to.equal(200);
      const streamed = await service.chat(caller, { ...changes, stream: true });
      expect(streamed.status).to.equal(200);
      for (const call of service.upstream.calls) expect(call.body).to.deep.include(changes);
      expect(whole.json.choices[0].message.content).to.equal(text);
      expect(contentOf(streamed.text)).to.equal(text + text);
      const stored = await service.get(`/v1/requests/${streamed.headers.get('x-svc-request-id')}`, caller);
      expect(stored.json.result.choices[0].message.content).to.equal(text + text);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP, DEFAULT_COST_AP]);
    });
  }

  it('with peculiar characters in an input too large for the job passes through', async () => {
    const content = `\u0000\ud83d${'x'.repeat(100_000)}\ude00`;
    const caller = await service.makeCaller();
    expect((await service.chat(caller, { messages: [{ role: 'user', content }] })).status).to.equal(200);
    expect(service.upstream.calls[0]?.body.messages).to.deep.equal([{ role: 'user', content }]);
  });

  it('that the provider refuses in peculiar words is settled all the same', async () => {
    const caller = await service.makeCaller();
    // cut to 300 characters in the middle of an emoji, and NUL in the field's name
    const message = `${'x'.repeat(299)}😀`;
    service.upstream.programNext({ status: 400, error: { message, param: 'a\u0000\ud83d' } });
    const answer = await service.chat(caller);
    expect([answer.status, answer.json.error.code]).to.deep.equal([400, 'invalid_parameter']);
    expect(answer.json.provider_message).to.match(/^x{299}/);
    expect(service.upstream.count()).to.equal(1);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
    expect(await service.balanceOf(caller.accountId)).to.include({ heldAp: 0 });
  });

  it('is taken with any JSON type and charset parameter, and without a type', async () => {
    const { secret } = await service.makeCaller();
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'Application/JSON;charset=UTF-8',
      'application/vnd.x+json',
    ]) {
      const answer = await service.post(CHAT, {
        secret,
        body: chatBody(),
        headers: { 'content-type': type },
      });
      expect(answer.status, type).to.equal(200);
    }
  });
});

function contentOf(stream: string): string {
  return stream
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map(
      (event) =>
        (JSON.parse(event.slice(6)) as { choices: { delta?: { content?: string } }[] }).choices[0]?.delta
          ?.content ?? '',
    )
    .join('');
}
