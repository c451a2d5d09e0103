/** How the OpenAI adapter reads an upstream's failures: statuses, broken answers, lies about usage, cut streams, limits. */
import { type AddressInfo, createServer } from 'node:net';
import { inspect } from 'node:util';
import { expect } from 'chai';
import type { HttpLimits } from '../../../workers/providers/http-exchange.ts';
import { parseRetryAfter } from '../../../workers/providers/openai/errors.ts';
import { makeOpenAiProvider } from '../../../workers/providers/openai/index.ts';
import {
  type ChatCall,
  type ChatChunk,
  type GrowingRoom,
  ProviderError,
  type ProviderErrorKind,
} from '../../../workers/providers/provider.ts';
import { type MockUpstream, startMockUpstream } from '../../helpers/mock-upstream.ts';
import type { MockBehaviour } from '../../helpers/mock-upstream-wire.ts';
import { choicesOf, collect, contentOf, failureOf } from './conformance.ts';

const CREDENTIAL = 'sk-secret';
const MIB = 1024 * 1024;
const LONG_COMPLETION = `{"choices":[{"message":{"content":"${'x'.repeat(100_000)}"}}]}`;

describe('the openai chat adapter, when the upstream misbehaves', () => {
  let upstream: MockUpstream;
  const closers: (() => Promise<void>)[] = [];

  before(async () => {
    upstream = await startMockUpstream();
  });
  afterEach(() => upstream.reset());
  after(async () => {
    await upstream.close();
    await Promise.all(closers.map((close) => close()));
  });

  function chatAt(baseUrl: string, limits: Partial<HttpLimits> = {}) {
    const provider = makeOpenAiProvider(
      { name: 'mock', kind: 'openai', baseUrl, credential: CREDENTIAL },
      { closeGraceMs: 0, ...limits },
    );
    closers.push(() => provider.close());
    if (provider.chat === undefined) throw new Error('no chat');
    return provider.chat;
  }

  function call(body: Record<string, unknown> = {}, signal = new AbortController().signal): ChatCall {
    const messages = [{ role: 'user', content: 'Hello' }];
    return {
      requestId: 'request-1',
      upstreamModel: 'm',
      outputCapTokens: 50,
      signal,
      body: { messages, ...body },
    };
  }

  async function errorOf(
    behaviour: MockBehaviour,
    how: 'complete' | 'stream' = 'complete',
    limits?: Partial<HttpLimits>,
    body?: Record<string, unknown>,
  ): Promise<ProviderError> {
    const chat = chatAt(upstream.baseUrl, limits);
    upstream.programNext(behaviour);
    const error = await failureOf(
      how === 'complete' ? chat.complete(call(body)) : collect(chat.stream(call(body))),
    );
    expect(error).to.be.instanceOf(ProviderError);
    return error as ProviderError;
  }

  const statuses: [number, MockBehaviour['error'], ProviderErrorKind][] = [
    [400, { message: 'Bad.' }, 'rejected'],
    [400, { code: 'content_filter' }, 'moderated'],
    [400, { code: 'content_policy_violation' }, 'moderated'],
    [400, { type: 'moderation_blocked' }, 'moderated'],
    [400, { code: 'x', innererror: { code: 'ResponsibleAIPolicyViolation' } }, 'moderated'],
    [413, {}, 'rejected'],
    [422, { code: 'content_filter' }, 'moderated'],
    [422, {}, 'rejected'],
    [401, {}, 'misconfigured'],
    [402, {}, 'misconfigured'],
    [403, {}, 'misconfigured'],
    [404, {}, 'misconfigured'],
    [308, {}, 'misconfigured'],
    [201, {}, 'invalid_response'],
    [408, {}, 'unavailable'],
    [409, {}, 'unavailable'],
    [429, { code: 'content_filter' }, 'unavailable'],
    [500, { code: 'content_filter' }, 'unavailable'],
    [502, {}, 'unavailable'],
    [529, {}, 'unavailable'],
  ];
  for (const [status, error, kind] of statuses) {
    it(`takes ${status} ${JSON.stringify(error)} for ${kind}`, async () => {
      for (const how of ['complete', 'stream'] as const) {
        const failure = await errorOf({ status, error: error ?? {} }, how);
        expect(failure.kind).to.equal(kind);
        expect(failure.status).to.equal(status);
      }
    });
  }

  it('never follows a redirect', async () => {
    const elsewhere = await startMockUpstream();
    const failure = await errorOf({
      status: 307,
      error: {},
      headers: { location: `${elsewhere.baseUrl}/chat/completions` },
    });
    expect(failure.kind).to.equal('misconfigured');
    expect(elsewhere.count()).to.equal(0);
    expect(elsewhere.connectionCount()).to.equal(0);
    await elsewhere.close();
  });

  it('passes on how long to wait, in seconds or as a date', async () => {
    expect((await errorOf({ status: 429, retryAfter: '7' })).retryAfterSeconds).to.equal(7);
    expect(
      (await errorOf({ status: 503, retryAfter: new Date(Date.now() + 30_000).toUTCString() }, 'stream'))
        .retryAfterSeconds,
    ).to.be.within(25, 31);
    expect((await errorOf({ status: 429 })).retryAfterSeconds).to.equal(undefined);
  });

  it('reads Retry-After in every form, and bounds it', () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    expect(parseRetryAfter('1.2', now)).to.equal(2);
    expect(parseRetryAfter('Thu, 01 Jan 2026 00:01:00 GMT', now)).to.equal(60);
    expect(parseRetryAfter('Wed, 31 Dec 2025 00:00:00 GMT', now)).to.equal(0);
    expect(parseRetryAfter('999999999', now)).to.equal(86_400);
    for (const nonsense of ['soon', '-5', '', undefined])
      expect(parseRetryAfter(nonsense, now)).to.be.oneOf([undefined, 0]);
  });

  it('keeps the provider’s words for the caller only when the request is at fault, and bounded', async () => {
    const rejected = await errorOf({
      status: 400,
      error: { message: `Too hot.\n${'x'.repeat(1_000)}`, param: 'temperature' },
    });
    expect(rejected.publicMessage)
      .to.match(/^Too hot\. x+$/)
      .and.have.length(300);
    expect(rejected.param).to.equal('temperature');
    expect(rejected.message).to.not.include('Too hot');
    expect((await errorOf({ status: 401, error: { message: 'Too hot.' } })).publicMessage).to.equal(
      undefined,
    );
    expect((await errorOf({ status: 400, error: { message: `Key ${CREDENTIAL}` } })).publicMessage).to.equal(
      undefined,
    );
  });

  it('reads at most 64 KB of an error', async () => {
    const failure = await errorOf({
      status: 400,
      rawBody: Array.from({ length: 40 }, () => 'x'.repeat(16_000)),
    });
    expect(failure.kind).to.equal('rejected');
    expect((await upstream.waitForAbort()).bytesWritten).to.be.below(640_000 + 1);
  });

  it('goes by the status of an error whose body does not come, or breaks off', async () => {
    const rawBodyGate = new Promise(() => {});
    for (const how of ['complete', 'stream'] as const) {
      for (const [status, kind] of [
        [503, 'unavailable'],
        [400, 'rejected'],
      ] as const) {
        const failure = await errorOf({ status, rawBody: '{"error":', rawBodyGate }, how, {
          errorBodyMs: 20,
        });
        expect([failure.kind, failure.status]).to.deep.equal([kind, status]);
        await upstream.waitForAbort();
        const server = createServer((socket) =>
          socket.once('data', () => socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 400\r\n\r\n{"err`)),
        );
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
        const chat = chatAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
        const cut = await failureOf(
          how === 'complete' ? chat.complete(call()) : collect(chat.stream(call())),
        );
        expect(cut).to.include({ kind, status });
        await new Promise((resolve) => server.close(resolve));
      }
    }
  });

  const broken: [string, MockBehaviour][] = [
    ['broken JSON', { rawBody: '{"choices": [' }],
    ['an empty body', { rawBody: '' }],
    ['a list', { rawBody: '[]' }],
    ['null', { rawBody: 'null' }],
    ['no choices', { rawBody: '{"object":"chat.completion"}' }],
    ['an empty list of choices', { choices: [] }],
    ['a choice without a message', { choices: [{ index: 0 }] }],
    ['another content type', { contentType: 'text/html', rawBody: '<html></html>' }],
    ['an event stream', { contentType: 'text/event-stream', rawBody: 'data: {}\n\n' }],
    ['usage that is not an object', { usage: 'much' }],
    ['usage without counts', { usage: {} }],
    ['negative usage', { usage: { prompt_tokens: -1, completion_tokens: 1 } }],
    ['fractional usage', { usage: { prompt_tokens: 1, completion_tokens: 1.5 } }],
    ['usage beyond whole numbers', { usage: { prompt_tokens: 1e300, completion_tokens: 1 } }],
    ['usage in words', { usage: { prompt_tokens: '1', completion_tokens: 1 } }],
    ['an impossible total', { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: -2 } }],
  ];
  for (const [what, behaviour] of broken) {
    it(`takes ${what} for an invalid response`, async () => {
      const failure = await errorOf(behaviour);
      expect(failure.kind).to.equal('invalid_response');
      expect(failure.isRoutable).to.equal(true);
      expect(failure.isRetryable).to.equal(false);
    });
  }

  it('takes null usage and null totals for what they are', async () => {
    const chat = chatAt(upstream.baseUrl);
    upstream.programNext(
      { usage: null },
      { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: null } },
    );
    expect((await chat.complete(call())).usage).to.equal(undefined);
    expect((await chat.complete(call())).usage?.completionTokens).to.equal(2);
  });

  it('reads an error object under status 200', async () => {
    expect((await errorOf({ rawBody: '{"error":{"code":"content_filter"}}' })).kind).to.equal('moderated');
    expect((await errorOf({ rawBody: '{"error":{"code":502}}' })).kind).to.equal('unavailable');
  });

  it('takes a body over the size limit for an invalid response, and stops reading it', async () => {
    const limits = { maxResponseBytes: 100_000 };
    const rawBody = Array.from({ length: 200 }, () => ' '.repeat(16_000));
    const failure = await errorOf({ rawBody }, 'complete', limits);
    expect(failure.kind).to.equal('invalid_response');
    await upstream.waitForAbort();
    expect((await errorOf({ firehoseBytes: 50_000_000 }, 'stream', limits)).kind).to.equal(
      'invalid_response',
    );
    await upstream.waitForAbort();
  });

  it('takes a whole answer of up to 16 MiB', async () => {
    expect(await errorOf({ content: 'x'.repeat(16 * MIB) })).to.include({
      kind: 'invalid_response',
      isOurLimit: true,
    });
    upstream.programNext({ content: 'x'.repeat(16 * MIB - 1024) });
    const { usage } = await chatAt(upstream.baseUrl).complete(call());
    expect(usage?.completionTokens).to.be.above(0);
  });

  it('does not parse an answer that would take more memory than there is', async () => {
    const [head, tail] = ['{"choices":[{"message":{"content":""}}],"x":[[]', ']}'];
    for (const rawBody of [`${head}${',{}'.repeat(4 * MIB)}${tail}`, '['.repeat(15 * MIB)])
      expect(await errorOf({ rawBody })).to.include({ kind: 'invalid_response', isOurLimit: true });
  });

  it('asks for room for an answer that is no small one: for its bytes, and for what becomes of it', async () => {
    const asked: [string, number][] = [];
    const room: GrowingRoom = {
      enter: async (bytes) => void asked.push(['enter', bytes]),
      grow: async (bytes) => void asked.push(['grow', bytes]),
      leave: () => {},
    };
    const chat = chatAt(upstream.baseUrl);
    upstream.programNext({ content: 'x'.repeat(60_000) });
    await chat.complete({ ...call(), room });
    expect(asked).to.deep.equal([]);
    upstream.programNext({ content: 'x'.repeat(100_000) }, { rawBody: LONG_COMPLETION });
    await chat.complete({ ...call(), room });
    await chat.complete({ ...call(), room });
    expect(asked.map(([what]) => what)).to.deep.equal(['enter', 'grow', 'enter', 'grow']);
    expect(asked[0]?.[1]).to.be.within(100_000, 101_000);
    expect(asked[1]?.[1]).to.be.within(400_000, 410_000);
    expect(asked[2]?.[1]).to.equal(16 * MIB); // no length was announced
  });

  it('takes a refused, reset or silent connection for unavailable', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const refused = await failureOf(chatAt(`http://127.0.0.1:${port}/v1`).complete(call()));
    expect((refused as ProviderError).kind).to.equal('unavailable');
    for (const how of ['complete', 'stream'] as const) {
      expect((await errorOf({ reset: 'before-headers' }, how)).kind).to.equal('unavailable');
    }
    // Together, since undici's timers make each of these take a second.
    const silent = await Promise.all([
      errorOf({ hang: 'before-headers' }, 'complete', { headersTimeoutMs: 50 }),
      errorOf({ hang: 'before-headers' }, 'stream', { headersTimeoutMs: 50 }),
      errorOf({ hang: 'before-headers' }, 'complete', { headersTimeoutMs: 50 }),
    ]);
    for (const failure of silent) expect(failure.kind).to.equal('unavailable');
    expect((await errorOf({ hang: 1 }, 'stream', { idleTimeoutMs: 50 })).kind).to.equal('unavailable');
  }).timeout(10_000);

  it('calls an upstream that fails twice, and then has its answer', async () => {
    upstream.program('m', { status: 500, failTimes: 2 });
    const chat = chatAt(upstream.baseUrl);
    expect(((await failureOf(chat.complete(call()))) as ProviderError).isRetryable).to.equal(true);
    await failureOf(chat.complete(call()));
    expect((await chat.complete(call())).usage?.completionTokens).to.equal(5);
    expect(upstream.count('m')).to.equal(3);
  });

  const cuts: [string, MockBehaviour, Record<string, unknown>?][] = [
    ['ended early', { cutAfterChunks: 2 }],
    ['reset', { reset: 2 }],
    ['finished without a finish reason', { omitFinish: true }],
    ['without any choice', { rawBody: 'data: [DONE]\n\n' }],
    ['empty', { rawBody: '' }],
    ['of broken JSON', { rawBody: 'data: {"choices"\n\ndata: [DONE]\n\n' }],
    ['of chunks without choices', { rawBody: 'data: {}\n\ndata: [DONE]\n\n' }],
    ['of choices without an index', { rawBody: 'data: {"choices":[{"delta":{}}]}\n\n' }],
    ['of another content type', { contentType: 'application/json' }],
    ['that lies about usage', { usage: { prompt_tokens: -5, completion_tokens: 0 } }],
    [
      'that gives one choice of two, and no [DONE]',
      { rawBody: 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n' },
      { n: 2 },
    ],
    [
      'with one endless line',
      { rawBody: Array.from({ length: 70 }, (_, index) => (index === 0 ? 'data: ' : 'x'.repeat(16_000))) },
    ],
  ];
  for (const [what, behaviour, body] of cuts) {
    it(`takes a stream ${what} for an invalid response`, async () => {
      expect((await errorOf(behaviour, 'stream', {}, body)).kind).to.equal('invalid_response');
    });
  }

  it('accepts a stream without [DONE] when every choice finished', async () => {
    const chat = chatAt(upstream.baseUrl);
    upstream.programNext({ omitDone: true });
    expect(contentOf(await collect(chat.stream(call({ n: 2 }))), 1)).to.equal('Hello from the mock.');
  });

  it('closes a connection that the provider keeps open behind [DONE]', async () => {
    const chat = chatAt(upstream.baseUrl, { drainMs: 20 });
    const chunk = 'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n';
    upstream.programNext({ rawBody: `${chunk}data: [DONE]\n\n`, rawBodyGate: new Promise(() => {}) });
    expect(contentOf(await collect(chat.stream(call())), 0)).to.equal('Hi');
    await upstream.waitForAbort();
  });

  it('accepts [DONE] with spaces around it', async () => {
    const chat = chatAt(upstream.baseUrl);
    const chunk = 'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n';
    upstream.programNext({ rawBody: `${chunk}data:  [DONE] \n\n` });
    expect(contentOf(await collect(chat.stream(call())), 0)).to.equal('Hi');
  });

  it('ends a stream by an error event, with the chunks before it', async () => {
    const chat = chatAt(upstream.baseUrl);
    for (const [error, kind] of [
      [{ message: 'overloaded', code: 'server_error' }, 'unavailable'],
      [{ message: 'no', code: 'content_filter' }, 'moderated'],
    ] as const) {
      for (const named of [true, false]) {
        upstream.programNext({ errorEvent: { afterChunks: 2, error, named } });
        const chunks: ChatChunk[] = [];
        const failure = await failureOf(
          (async () => {
            for await (const chunk of chat.stream(call())) chunks.push(chunk);
          })(),
        );
        expect((failure as ProviderError).kind).to.equal(kind);
        expect(chunks.map(({ chunk }) => choicesOf(chunk).length)).to.deep.equal([1, 1, 1]);
      }
    }
  });

  it('keeps pieces of an answer that breaks HTTP, or breaks off, out of its error', async () => {
    const answers: [string, ProviderErrorKind][] = [
      ['content-length: nonsense-with-a-prompt\r\n\r\n', 'invalid_response'],
      // A whole answer cut off is a lost connection: nobody has seen any of it, so it may be asked for again.
      ['content-length: 400\r\n\r\n{"nonsense-with-a-prompt', 'unavailable'],
    ];
    for (const [head, kind] of answers) {
      const server = createServer((socket) =>
        socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\n${head}`)),
      );
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const failure = await failureOf(
        chatAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).complete(call()),
      );
      expect((failure as ProviderError).kind).to.equal(kind);
      expect(inspect(failure, { depth: 10, showHidden: true })).to.not.include('nonsense-with-a-prompt');
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
