/** What the OpenAI adapter sends, how it streams, holds back and aborts, and how it checks a provider. */
import { expect } from 'chai';
import fc from 'fast-check';
import { makeProvider } from '../../../workers/providers/index.ts';
import { makeOpenAiProvider } from '../../../workers/providers/openai/index.ts';
import type { ChatCall, ProviderConfig, ProviderError } from '../../../workers/providers/provider.ts';
import { type MockUpstream, startMockUpstream } from '../../helpers/mock-upstream.ts';
import { collect, contentOf, failureOf } from './conformance.ts';

const EVERY_PARAMETER = {
  messages: [
    { role: 'developer', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is it? 猫' },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } },
      ],
    },
  ],
  temperature: 0,
  top_p: 0.5,
  n: 2,
  stop: ['END'],
  seed: 7,
  presence_penalty: 0.1,
  frequency_penalty: -0.1,
  logit_bias: { 50256: -100 },
  logprobs: true,
  top_logprobs: 3,
  user: 'u',
  tools: [
    {
      type: 'function',
      function: { name: 'f', parameters: { type: 'object', properties: {} }, strict: true },
    },
  ],
  tool_choice: { type: 'function', function: { name: 'f' } },
  parallel_tool_calls: false,
  response_format: { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' } } },
  reasoning_effort: 'low',
  verbosity: 'low',
  service_tier: 'default',
  store: false,
  metadata: { a: 'b' },
  modalities: ['text'],
  prediction: null,
};

describe('the openai chat adapter', () => {
  let upstream: MockUpstream;
  let config: ProviderConfig;
  const closers: (() => Promise<void>)[] = [];

  before(async () => {
    upstream = await startMockUpstream({ credential: 'sk-good' });
    config = { name: 'mock', kind: 'openai', baseUrl: upstream.baseUrl, credential: 'sk-good' };
  });
  afterEach(() => upstream.reset());
  after(async () => {
    await Promise.all(closers.map((close) => close()));
    await upstream.close();
  });

  function makeChat() {
    const provider = makeOpenAiProvider(config, { closeGraceMs: 0 });
    closers.push(() => provider.close());
    if (provider.chat === undefined) throw new Error('no chat');
    return provider.chat;
  }

  function call(body: Record<string, unknown> = {}, signal = new AbortController().signal): ChatCall {
    const messages = [{ role: 'user', content: 'Hello' }];
    return {
      requestId: 'request-1',
      upstreamModel: 'gpt-large',
      outputCapTokens: 50,
      signal,
      body: { model: 'ours', messages, ...body },
    };
  }

  it('passes every parameter unchanged but the model, the cap and the streaming fields', async () => {
    const chat = makeChat();
    await chat.complete(call(EVERY_PARAMETER));
    await collect(chat.stream(call({ ...EVERY_PARAMETER, stream_options: { include_obfuscation: false } })));
    const [whole, streamed] = upstream.calls;
    expect(whole?.body).to.deep.equal({
      ...EVERY_PARAMETER,
      model: 'gpt-large',
      stream: false,
      max_completion_tokens: 50,
    });
    expect(streamed?.body).to.deep.equal({
      ...EVERY_PARAMETER,
      model: 'gpt-large',
      stream: true,
      max_completion_tokens: 50,
      stream_options: { include_obfuscation: false, include_usage: true },
    });
    expect(whole?.headers).to.include({
      authorization: 'Bearer sk-good',
      'x-client-request-id': 'request-1',
    });
  });

  it('writes the output cap into the field the caller used', async () => {
    const chat = makeChat();
    for (const body of [
      { max_tokens: 9 },
      { max_completion_tokens: 9 },
      {},
      { max_tokens: null },
      { max_tokens: 9, max_completion_tokens: 9 },
    ]) {
      await chat.complete(call(body));
    }
    const caps = upstream.calls.map(({ body }) => [body.max_tokens, body.max_completion_tokens]);
    expect(caps).to.deep.equal([
      [50, undefined],
      [undefined, 50],
      [undefined, 50],
      [null, 50],
      [50, 50],
    ]);
  });

  it('leaves stream options out of a call that is not streamed', async () => {
    await makeChat().complete(call({ stream_options: { include_usage: true } }));
    expect(upstream.calls[0]?.body).to.not.have.property('stream_options');
  });

  it('gives the provider’s answer as it came', async () => {
    upstream.programNext({ extra: { vendor_field: { deep: [1] }, citations: ['a'] } });
    const { completion } = await makeChat().complete(call());
    expect(completion).to.deep.include({ vendor_field: { deep: [1] }, citations: ['a'], model: 'gpt-large' });
  });

  it('uses a connection again, also after a stream', async () => {
    const fresh = await startMockUpstream();
    const provider = makeOpenAiProvider({ ...config, baseUrl: fresh.baseUrl });
    for (let round = 0; round < 3; round += 1) {
      await provider.chat?.complete(call());
      await collect(provider.chat?.stream(call()) ?? (async function* () {})());
      await (await fresh.waitForCall()).finished;
      await (await fresh.waitForCall()).finished;
    }
    expect(fresh.connectionCount()).to.be.at.most(2);
    await provider.close();
    await fresh.close();
  });

  it('gives each chunk as it comes: the next is not sent before the last was seen', async () => {
    const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
    upstream.programNext({
      content: 'one two three four',
      chunkGate: (index) => gates[index - 1]?.promise ?? Promise.resolve(),
    });
    let seen = 0;
    for await (const { chunk } of makeChat().stream(call())) {
      const content = (chunk.choices as { delta?: { content?: string } }[])[0]?.delta?.content;
      if (content === undefined || content === '') continue;
      gates[seen]?.resolve();
      seen += 1;
    }
    expect(seen).to.equal(4);
  });

  it('reads text however its bytes are cut apart', async () => {
    const chat = makeChat();
    const piece = (content: string, finish: string | null) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}`;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { minLength: 1, maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 }),
        fc.constantFrom('\n', '\r\n', '\r'),
        async (texts, sizes, newline) => {
          const lines = [
            ': comment',
            ...texts.map((text) => piece(text, null)),
            piece('', 'stop'),
            'data: [DONE]',
          ];
          const bytes = Buffer.from(lines.map((line) => line + newline + newline).join(''));
          const rawBody: Buffer[] = [];
          for (let start = 0, turn = 0; start < bytes.length; turn += 1) {
            const size = sizes[turn % sizes.length] ?? 1;
            rawBody.push(bytes.subarray(start, start + size));
            start += size;
          }
          upstream.programNext({ rawBody });
          expect(contentOf(await collect(chat.stream(call())), 0)).to.equal(texts.join(''));
        },
      ),
      { numRuns: 25 },
    );
  });

  it('holds the upstream back while its reader pauses, and then gives everything', async () => {
    const total = 24_000_000;
    upstream.programNext({ firehoseBytes: total });
    const chat = makeChat();
    const iterator = chat.stream(call())[Symbol.asyncIterator]();
    await iterator.next();
    const upstreamCall = await upstream.waitForCall();
    // Time in which the upstream would have written all of it: round trips of other calls rather than a clock.
    for (let round = 0; round < 150; round += 1) await chat.complete(call());
    expect(upstreamCall.bytesWritten).to.be.below(total / 2);
    let received = 0;
    for (let result = await iterator.next(); result.done !== true; result = await iterator.next()) {
      received += JSON.stringify(result.value.chunk).length;
    }
    expect(received).to.be.greaterThan(total * 0.9);
    expect(upstreamCall.bytesWritten).to.be.at.least(total);
  }).timeout(10_000);

  it('closes the upstream connection when aborted, before the headers and in the middle', async () => {
    for (const behaviour of [{ hang: 'before-headers' }, { hang: 2 }] as const) {
      upstream.programNext(behaviour);
      const controller = new AbortController();
      const failure = failureOf(collect(makeChat().stream(call({}, controller.signal))));
      await upstream.waitForCall();
      controller.abort(new Error('The client went away.'));
      expect((await failure) as Error).to.have.property('message', 'The client went away.');
      await upstream.waitForAbort();
    }
  });

  it('closes the upstream connection when the reader stops, also while a chunk is awaited', async () => {
    upstream.programNext({ hang: 0 });
    const iterator = makeChat().stream(call())[Symbol.asyncIterator]();
    await iterator.next();
    const waiting = iterator.next();
    await iterator.return?.();
    expect((await waiting).done).to.equal(true);
    await upstream.waitForAbort();
  });

  it('aborts at once although the connection is still being made', async () => {
    // TEST-NET-1 answers nobody; where it is refused at once the call fails before the abort, which is also an end.
    const provider = makeOpenAiProvider({ ...config, baseUrl: 'http://192.0.2.1:9/v1' }, { closeGraceMs: 0 });
    const controller = new AbortController();
    const failure = failureOf(provider.chat?.complete(call({}, controller.signal)) ?? Promise.resolve());
    setImmediate(() => controller.abort(new Error('gone')));
    expect(await failure).to.be.instanceOf(Error);
    await provider.close();
  });

  it('sends nothing before a stream is read', () => {
    makeChat().stream(call());
    expect(upstream.count()).to.equal(0);
  });

  it('lets calls under way finish when it is closed', async () => {
    const gate = Promise.withResolvers<void>();
    upstream.programNext({ gate: gate.promise });
    const provider = makeOpenAiProvider(config);
    const answer = provider.chat?.complete(call());
    await upstream.waitForCall();
    const closed = provider.close();
    gate.resolve();
    expect((await answer)?.usage?.completionTokens).to.equal(5);
    await closed;
    const late = await failureOf(provider.chat?.complete(call()) ?? Promise.resolve());
    expect((late as ProviderError).kind).to.equal('unavailable');
  });

  describe('check', () => {
    it('lists the models of the provider', async () => {
      expect(await makeOpenAiProvider(config).check()).to.deep.equal({ models: ['gpt-large', 'gpt-small'] });
    });

    it('throws by the same kinds as a call, and shows no credential', async () => {
      const wrong = makeOpenAiProvider({ ...config, credential: 'sk-wrong' });
      const error = (await failureOf(wrong.check())) as ProviderError;
      expect(error.kind).to.equal('misconfigured');
      upstream.programNext({ status: 503, retryAfter: '3' });
      expect(await failureOf(makeOpenAiProvider(config).check())).to.include({
        kind: 'unavailable',
        retryAfterSeconds: 3,
      });
      upstream.programNext({ rawBody: '{"data": {}}' });
      expect(await failureOf(makeOpenAiProvider(config).check())).to.include({ kind: 'invalid_response' });
      const controller = new AbortController();
      upstream.programNext({ hang: 'before-headers' });
      const failure = failureOf(makeOpenAiProvider(config).check(controller.signal));
      setImmediate(() => controller.abort(new Error('enough')));
      expect(await failure).to.have.property('message', 'enough');
    });
  });

  describe('configuration', () => {
    it('is refused in words for an operator', () => {
      expect(() => makeProvider({ ...config, kind: 'telepathy' })).to.throw(
        'unknown kind "telepathy"; known kinds: elevenlabs, openai, sandbox',
      );
      expect(() => makeProvider({ ...config, kind: 'constructor' })).to.throw('unknown kind');
      expect(() => makeProvider({ ...config, baseUrl: undefined })).to.throw('needs an http(s) base address');
      expect(() => makeProvider({ ...config, baseUrl: 'ftp://example.com' })).to.throw(
        'needs an http(s) base address',
      );
      expect(() => makeProvider({ ...config, baseUrl: 'http://user:pass@example.com' })).to.throw(
        'must not hold a credential',
      );
      expect(() => makeProvider({ ...config, credential: 'sk-a\nb' })).to.throw(
        /^(?!.*sk-a).*no header can carry/,
      );
    });

    it('keeps the path and the query of the base address', async () => {
      const provider = makeOpenAiProvider({ ...config, baseUrl: `${upstream.baseUrl}/?api-version=1` });
      await provider.chat?.complete(call());
      expect(upstream.calls[0]?.path).to.equal('/v1/chat/completions?api-version=1');
      await provider.close();
    });
  });
});
