/** Chat as users meet it: the official client in front, a provider of the convention behind, the books exact after each call. */
import { expect } from 'chai';
import { afterEach, beforeEach, describe, it } from 'mocha';
import OpenAI from 'openai';
import type { ChatCompletionChunk, ChatCompletionCreateParams } from 'openai/resources/chat/completions';
import {
  AP_IN_PER_1K,
  AP_OUT_PER_1K,
  DEFAULT_COST_AP,
  MAX_TOKENS,
  MODEL,
  MODEL_WITH_BACKUP,
  makeGate,
  type TestCaller,
  withTestService,
} from '../helpers/service.ts';
import { makeClient, ONCE, refusalOf } from './openai-client.ts';

const BALANCE_AP = 100_000;
const HELLO: ChatCompletionCreateParams['messages'] = [{ role: 'user', content: 'Hello' }];
const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}';

describe('chat with the official client', () => {
  const service = withTestService();
  let caller: TestCaller;
  let client: OpenAI;
  let expectedCharges: number[];

  beforeEach(async () => {
    caller = await service.makeCaller({ balanceAp: BALANCE_AP });
    client = makeClient(service, caller);
    expectedCharges = [];
  });
  afterEach('the ledger is exact', async () => {
    service.upstream.reset();
    service.backup.reset();
    expect(await service.chargesOf(caller.accountId), 'charges').to.deep.equal(expectedCharges);
    const charged = expectedCharges.reduce((sum, ap) => sum + ap, 0);
    expect(await service.balanceOf(caller.accountId)).to.deep.equal({
      balanceAp: BALANCE_AP - charged,
      heldAp: 0,
      purchasedAp: BALANCE_AP - charged,
    });
    await service.ledgerIsClean();
  });

  describe('a completion', () => {
    it('is answered with the provider’s words and our id, model and time, and its cost in a header', async () => {
      const before = Math.floor(Date.now() / 1000);
      service.upstream.programNext({ content: 'Good day.', finishReason: 'length' });
      const { data, response } = await client.chat.completions
        .create({ model: MODEL, messages: HELLO })
        .withResponse();
      expect(data.id).to.match(new RegExp(`^chatcmpl-${UUID}$`));
      expect(data.object).to.equal('chat.completion');
      expect(data.model).to.equal(MODEL);
      expect(data.created).to.be.within(before, Math.ceil(Date.now() / 1000));
      expect(data.choices).to.deep.equal([
        {
          index: 0,
          message: { role: 'assistant', content: 'Good day.', refusal: null, annotations: [] },
          logprobs: null,
          finish_reason: 'length',
        },
      ]);
      expect(data.usage).to.deep.include({ prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 });
      expect(data.usage?.completion_tokens_details).to.include({ reasoning_tokens: 0 });
      expect(response.headers.get('content-type')).to.match(/^application\/json/);
      expect(response.headers.get('x-svc-ap-cost')).to.equal(String(DEFAULT_COST_AP));
      expect(response.headers.get('x-svc-model')).to.equal(MODEL);
      expect(data.id).to.equal(`chatcmpl-${response.headers.get('x-svc-request-id')}`);
      expectedCharges = [DEFAULT_COST_AP];
    });

    it('costs what the provider’s usage says, rounded up once', async () => {
      const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
      service.upstream.programNext({ usage });
      await client.chat.completions.create({ model: MODEL, messages: HELLO });
      expectedCharges = [Math.ceil((11 * AP_IN_PER_1K + 7 * AP_OUT_PER_1K) / 1000)];
    });

    it('is counted with a tokenizer when the provider reports no usage', async () => {
      service.upstream.programNext({ usage: 'missing', content: 'one two three four' });
      const { usage } = await client.chat.completions.create({ model: MODEL, messages: HELLO });
      // 3 to open the answer, 3 a message, "user" and "Hello" one token each
      expect(usage).to.deep.equal({ prompt_tokens: 8, completion_tokens: 4, total_tokens: 12 });
      expectedCharges = [8 + 2 * 4];
    });

    it('gives as many choices as `n` asks for, each of them paid', async () => {
      const { choices } = await client.chat.completions.create({
        model: MODEL,
        messages: HELLO,
        n: 3,
        max_tokens: 20,
      });
      expect(choices.map((choice) => choice.index)).to.deep.equal([0, 1, 2]);
      expectedCharges = [9 + 2 * 15];
    });

    it('passes tool calls through, and their results back', async () => {
      const toolCall = {
        id: 'call_1',
        type: 'function',
        function: { name: 'weather', arguments: '{"city":"Kyoto"}' },
      };
      service.upstream.programNext({
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: null, tool_calls: [toolCall] },
            finish_reason: 'tool_calls',
          },
        ],
      });
      const tools: ChatCompletionCreateParams['tools'] = [
        {
          type: 'function',
          function: {
            name: 'weather',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
            strict: true,
          },
        },
      ];
      const first = await client.chat.completions.create({
        model: MODEL,
        messages: HELLO,
        tools,
        tool_choice: { type: 'function', function: { name: 'weather' } },
        parallel_tool_calls: false,
      });
      expect(first.choices[0]?.message.tool_calls).to.deep.equal([toolCall]);
      expect(first.choices[0]?.finish_reason).to.equal('tool_calls');

      const answer = first.choices[0]?.message;
      if (answer === undefined) throw new Error('no answer');
      const second = [...HELLO, answer, { role: 'tool' as const, tool_call_id: 'call_1', content: '21 °C' }];
      await client.chat.completions.create({ model: MODEL, messages: second, tools });
      expect(service.upstream.calls[0]?.body).to.deep.include({ tools, parallel_tool_calls: false });
      expect(service.upstream.calls[1]?.body.messages).to.deep.equal(second);
      expectedCharges = [DEFAULT_COST_AP, DEFAULT_COST_AP];
    });

    it('is taken back as the client’s own helpers gave it, without what they parsed', async () => {
      const toolCall = {
        id: 'c1',
        type: 'function',
        function: { name: 'weather', arguments: '{"city":"Kyoto"}' },
      };
      const message = { role: 'assistant', content: '{"n":1}', refusal: null, tool_calls: [toolCall] };
      const delta = { ...message, tool_calls: [{ index: 0, ...toolCall }] };
      const chunk = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm' };
      const choices = [{ index: 0, message, finish_reason: 'tool_calls' }];
      const schema = { type: 'object', properties: { n: { type: 'integer' } } };
      const asked = {
        model: MODEL,
        messages: HELLO,
        tools: [
          {
            type: 'function' as const,
            function: { name: 'weather', parameters: { type: 'object' }, strict: true },
          },
        ],
        response_format: {
          type: 'json_schema' as const,
          json_schema: { name: 'answer', strict: true, schema },
        },
      };
      service.upstream.programNext({ choices });
      const parsed = (await client.chat.completions.parse(asked)).choices[0]?.message;
      const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };
      service.upstream.programNext({
        rawBody: [
          `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason: 'tool_calls' }] })}\n\n`,
          `data: ${JSON.stringify({ ...chunk, choices: [], usage })}\n\n`,
          'data: [DONE]\n\n',
        ],
      });
      const streamed = await client.chat.completions.stream(asked).finalMessage();
      for (const answer of [parsed, streamed]) {
        if (answer === undefined) throw new Error('no answer');
        expect(answer).to.have.deep.nested.property('parsed', { n: 1 });
        expect(answer).to.have.deep.nested.property('tool_calls[0].function.parsed_arguments', {
          city: 'Kyoto',
        });
        const messages = [...HELLO, answer, { role: 'tool' as const, tool_call_id: 'c1', content: '21 °C' }];
        await client.chat.completions.create({ model: MODEL, messages });
        const seen = service.upstream.calls.at(-1)?.body.messages as object[];
        expect(seen[1]).to.deep.include({ role: 'assistant', content: '{"n":1}', tool_calls: [toolCall] });
        expect(seen[1]).to.not.have.property('parsed');
      }
      expectedCharges = [DEFAULT_COST_AP, DEFAULT_COST_AP, DEFAULT_COST_AP, DEFAULT_COST_AP];
    });

    it('passes the deprecated functions through', async () => {
      const functionCall = { name: 'weather', arguments: '{}' };
      service.upstream.programNext({
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: null, function_call: functionCall },
            finish_reason: 'function_call',
          },
        ],
      });
      const functions = [{ name: 'weather', description: 'The weather.', parameters: { type: 'object' } }];
      const { choices } = await client.chat.completions.create({
        model: MODEL,
        messages: [...HELLO, { role: 'function', name: 'weather', content: 'sun' }],
        functions,
        function_call: { name: 'weather' },
      });
      expect(choices[0]?.message.function_call).to.deep.equal(functionCall);
      expect(service.upstream.calls[0]?.body).to.deep.include({
        functions,
        function_call: { name: 'weather' },
      });
      expectedCharges = [DEFAULT_COST_AP];
    });

    it('passes structured output through, and a refusal', async () => {
      const responseFormat: ChatCompletionCreateParams['response_format'] = {
        type: 'json_schema',
        json_schema: {
          name: 'answer',
          strict: true,
          schema: { type: 'object', properties: { n: { type: 'integer' } } },
        },
      };
      service.upstream.programNext(
        { content: '{"n":1}' },
        {
          choices: [
            {
              index: 0,
              message: { role: 'assistant', content: null, refusal: 'I cannot.' },
              finish_reason: 'stop',
            },
          ],
        },
      );
      const ask = () =>
        client.chat.completions.create({ model: MODEL, messages: HELLO, response_format: responseFormat });
      expect((await ask()).choices[0]?.message.content).to.equal('{"n":1}');
      expect((await ask()).choices[0]?.message.refusal).to.equal('I cannot.');
      expect(service.upstream.calls[0]?.body.response_format).to.deep.equal(responseFormat);
      expectedCharges = [DEFAULT_COST_AP, DEFAULT_COST_AP];
    });

    it('passes log-probabilities through', async () => {
      const logprobs = {
        content: [
          {
            token: 'Hi',
            logprob: -0.25,
            bytes: [72, 105],
            top_logprobs: [{ token: 'Hi', logprob: -0.25, bytes: [72, 105] }],
          },
        ],
        refusal: null,
      };
      service.upstream.programNext({
        choices: [
          { index: 0, message: { role: 'assistant', content: 'Hi' }, logprobs, finish_reason: 'stop' },
        ],
      });
      const { choices } = await client.chat.completions.create({
        model: MODEL,
        messages: HELLO,
        logprobs: true,
        top_logprobs: 1,
      });
      expect(choices[0]?.logprobs).to.deep.equal(logprobs);
      expect(service.upstream.calls[0]?.body).to.deep.include({ logprobs: true, top_logprobs: 1 });
      expectedCharges = [DEFAULT_COST_AP];
    });

    it('passes images, audio and files in messages through', async () => {
      const messages: ChatCompletionCreateParams['messages'] = [
        { role: 'developer', content: [{ type: 'text', text: 'Be brief.' }], name: 'boss' },
        {
          role: 'user',
          content: [
            { type: 'text', text: '何が見えますか' },
            {
              type: 'image_url',
              image_url: { url: `data:image/png;base64,${'A'.repeat(50_000)}`, detail: 'low' },
            },
            { type: 'image_url', image_url: { url: 'https://example.org/cat.png' } },
            { type: 'input_audio', input_audio: { data: 'B'.repeat(20_000), format: 'wav' } },
            { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
          ],
        },
      ];
      await client.chat.completions.create({ model: MODEL, messages });
      expect(service.upstream.calls[0]?.body.messages).to.deep.equal(messages);
      expectedCharges = [DEFAULT_COST_AP];
    });

    it('takes an input too large to ride in the job', async () => {
      const content = '長い話。'.repeat(20_000);
      await client.chat.completions
        .create({ model: MODEL, messages: [{ role: 'user', content }], max_tokens: 16 }, ONCE)
        .then(
          () => expect.fail('the balance cannot pay for it'),
          (error: { code: string }) => expect(error.code).to.equal('insufficient_ap'),
        );
      const rich = await service.makeCaller({ balanceAp: 1_000_000 });
      await makeClient(service, rich).chat.completions.create({
        model: MODEL,
        messages: [{ role: 'user', content }],
      });
      expect(service.upstream.calls[0]?.body.messages).to.deep.equal([{ role: 'user', content }]);
      expect(await service.chargesOf(rich.accountId)).to.deep.equal([DEFAULT_COST_AP]);
      expect((await service.traces()).inputs).to.equal(0);
    });

    it('passes every parameter of the convention through unchanged, whole and streamed', async () => {
      const parameters = {
        temperature: 0.3,
        top_p: 0.9,
        frequency_penalty: -1.5,
        presence_penalty: 1.25,
        logit_bias: { '50256': -100 },
        seed: 42,
        stop: ['\n', 'END'],
        max_completion_tokens: 77,
        reasoning_effort: 'low',
        verbosity: 'high',
        metadata: { trace: 'あ' },
        store: false,
        service_tier: 'default',
        user: 'user-1',
        safety_identifier: 'hash',
        prompt_cache_key: 'cache',
        prediction: { type: 'content', content: 'Hello' },
        modalities: ['text'],
        tool_choice: 'none',
        web_search_options: { search_context_size: 'low' },
        top_logprobs: null,
      } as const;
      const body = { model: MODEL, messages: HELLO, ...parameters } as unknown as ChatCompletionCreateParams;
      await client.chat.completions.create({ ...body, stream: false });
      const { stream: _stream, model, ...seen } = service.upstream.calls[0]?.body ?? {};
      expect(model).to.equal(MODEL); // the route's name for it, here the same
      expect(seen).to.deep.equal({ messages: HELLO, ...parameters });

      for await (const _chunk of await client.chat.completions.create({ ...body, stream: true }));
      const {
        stream,
        stream_options: streamOptions,
        model: _model,
        ...streamed
      } = service.upstream.calls[1]?.body ?? {};
      expect([stream, streamOptions]).to.deep.equal([true, { include_usage: true }]);
      expect(streamed).to.deep.equal({ messages: HELLO, ...parameters });
      expectedCharges = [DEFAULT_COST_AP, DEFAULT_COST_AP];
    });

    it('tells the provider the model’s maximum when the caller gives none', async () => {
      await client.chat.completions.create({ model: MODEL, messages: HELLO });
      await client.chat.completions.create({ model: MODEL, messages: HELLO, max_tokens: 55 });
      expect(service.upstream.calls[0]?.body).to.include({ max_completion_tokens: MAX_TOKENS });
      expect(service.upstream.calls[0]?.body).to.not.have.property('max_tokens');
      expect(service.upstream.calls[1]?.body).to.include({ max_tokens: 55 });
      expect(service.upstream.calls[1]?.body).to.not.have.property('max_completion_tokens');
      expectedCharges = [DEFAULT_COST_AP, DEFAULT_COST_AP];
    });

    it('is made by the sandbox for a test key, and charged like any other', async () => {
      const { secret } = await service.makeCaller({ prefix: 'svc_test_' });
      const { data, response } = await makeClient(service, { secret })
        .chat.completions.create({ model: MODEL, messages: HELLO, max_tokens: 100 })
        .withResponse();
      expect(data.choices[0]?.message.content).to.match(/sandbox/i);
      const { prompt_tokens: promptTokens, completion_tokens: completionTokens } =
        data.usage ?? expect.fail();
      expect(response.headers.get('x-svc-ap-cost')).to.equal(String(promptTokens + 2 * completionTokens));
      expect(service.upstream.count()).to.equal(0);
    });
  });

  describe('a stream', () => {
    it('brings each chunk when the provider sends it, not later', async () => {
      const words = ['one ', 'two ', 'three ', 'four'];
      const gates = words.map(() => makeGate());
      // the provider sends a word only after the caller has read the one before
      service.upstream.programNext({
        chunks: words,
        chunkGate: (index) => gates[index]?.passed ?? Promise.resolve(),
      });
      const { data, response } = await client.chat.completions
        .create({ model: MODEL, messages: HELLO, stream: true })
        .withResponse();
      const chunks: ChatCompletionChunk[] = [];
      let words_ = 0;
      for await (const chunk of data) {
        chunks.push(chunk);
        if (chunk.choices[0]?.delta.content) gates[++words_]?.open();
      }
      expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).to.equal(words.join(''));
      expect(chunks.at(-1)?.choices[0]?.finish_reason).to.equal('stop');
      expect(new Set(chunks.map((chunk) => chunk.id))).to.have.lengthOf(1);
      expect(chunks[0]?.id).to.equal(`chatcmpl-${response.headers.get('x-svc-request-id')}`);
      for (const chunk of chunks) {
        expect(chunk).to.include({ object: 'chat.completion.chunk', model: MODEL });
        expect(chunk).to.not.have.property('usage');
        expect(Math.abs(chunk.created - Date.now() / 1000)).to.be.below(60);
      }
      expect(response.headers.get('content-type')).to.match(/^text\/event-stream/);
      expect(response.headers.get('x-svc-model')).to.equal(MODEL);
      expect(response.headers.has('x-svc-ap-cost')).to.equal(false);
      expectedCharges = [DEFAULT_COST_AP];
    });

    it('ends with usage and `ap_cost` when `include_usage` asks for it, after the books are closed', async () => {
      const chunks: ChatCompletionChunk[] = [];
      let chargedWhenSeen: number[] = [];
      for await (const chunk of await client.chat.completions.create({
        model: MODEL,
        messages: HELLO,
        stream: true,
        stream_options: { include_usage: true },
      })) {
        chunks.push(chunk);
        if (chunk.usage) chargedWhenSeen = await service.chargesOf(caller.accountId);
      }
      const last = chunks.at(-1);
      expect(last?.choices).to.deep.equal([]);
      expect(last?.usage).to.include({ prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 });
      expect(last).to.have.property('ap_cost', DEFAULT_COST_AP);
      expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).to.equal(true);
      expect(chargedWhenSeen).to.deep.equal([DEFAULT_COST_AP]);
      expectedCharges = [DEFAULT_COST_AP];
    });

    it('is counted with a tokenizer when the provider reports no usage', async () => {
      service.upstream.programNext({ usage: 'missing', chunks: ['one ', 'two ', 'three'] });
      const stream = await client.chat.completions.create({
        model: MODEL,
        messages: HELLO,
        stream: true,
        stream_options: { include_usage: true },
      });
      let last: ChatCompletionChunk | undefined;
      for await (const chunk of stream) last = chunk;
      expect(last?.usage).to.deep.equal({ prompt_tokens: 8, completion_tokens: 3, total_tokens: 11 });
      expectedCharges = [8 + 2 * 3];
    });

    it('is put together by the client’s own helper, tool calls, choices and all', async () => {
      const deltas = [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }],
        },
        { tool_calls: [{ index: 0, function: { arguments: '{"a":' } }] },
        { tool_calls: [{ index: 0, function: { arguments: '1}' } }] },
      ];
      const event = (choice: object) =>
        `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, finish_reason: null, ...choice }] })}\n\n`;
      service.upstream.programNext({
        rawBody: [
          ...deltas.map((delta) => event({ delta })),
          event({ delta: {}, finish_reason: 'tool_calls' }),
          'data: [DONE]\n\n',
        ],
      });
      const completion = await client.chat.completions
        .stream({ model: MODEL, messages: HELLO })
        .finalChatCompletion();
      expect(completion.choices[0]?.message.tool_calls?.[0]).to.deep.include({
        id: 'call_1',
        type: 'function',
      });
      expect(completion.choices[0]?.message.tool_calls?.[0]).to.have.nested.property(
        'function.arguments',
        '{"a":1}',
      );
      const [{ cost } = { cost: 0 }] = (
        await service.pool.query<{ cost: number }>(
          'select cost_ap as cost from app.requests where account_id = $1',
          [caller.accountId],
        )
      ).rows;
      expect(cost).to.be.greaterThan(8);
      expectedCharges = [cost];
    });

    it('streams every choice that `n` asks for', async () => {
      const texts = new Map<number, string>();
      for await (const chunk of await client.chat.completions.create({
        model: MODEL,
        messages: HELLO,
        stream: true,
        n: 2,
      })) {
        for (const { index, delta } of chunk.choices)
          texts.set(index, (texts.get(index) ?? '') + (delta.content ?? ''));
      }
      expect(texts).to.deep.equal(
        new Map([
          [0, 'Hello from the mock.'],
          [1, 'Hello from the mock.'],
        ]),
      );
      expectedCharges = [9 + 2 * 10];
    });
  });

  describe('a refusal', () => {
    const create = (by: OpenAI, changes: object = {}) =>
      by.chat.completions.create(
        { model: MODEL, messages: HELLO, ...changes } as ChatCompletionCreateParams,
        ONCE,
      );

    it('is the class of error that its status stands for, with our code', async () => {
      const stranger = makeClient(service, { secret: `svc_live_${'x'.repeat(43)}` });
      const scopeless = makeClient(service, await service.makeCaller({ scopes: ['tts'] }));
      const limited = makeClient(service, await service.makeCaller({ ratePerMinute: 1 }));
      await create(limited);
      const poor = makeClient(service, await service.makeCaller({ balanceAp: 5 }));
      const picky = makeClient(service, await service.makeCaller({ allowedModels: [] }));
      service.upstream.program(MODEL, { status: 500 });
      const cases = [
        [stranger, {}, OpenAI.AuthenticationError, 401, 'invalid_api_key'],
        [picky, {}, OpenAI.PermissionDeniedError, 403, 'model_not_allowed'],
        [scopeless, {}, OpenAI.PermissionDeniedError, 403, undefined],
        [client, { model: 'no-such' }, OpenAI.NotFoundError, 404, 'model_not_found'],
        [limited, {}, OpenAI.RateLimitError, 429, 'rate_limited'],
        [client, { temperature: 3 }, OpenAI.BadRequestError, 400, 'invalid_parameter'],
        [client, { colour: 'red' }, OpenAI.BadRequestError, 400, 'unsupported_parameter'],
        [poor, {}, OpenAI.APIError, 402, 'insufficient_ap'],
        [client, {}, OpenAI.InternalServerError, 503, 'generation_failed'],
      ] as const;
      for (const [by, changes, errorClass, status, code] of cases) {
        const error = await refusalOf(create(by, changes));
        expect(error, `${status} ${code}`).to.be.instanceOf(errorClass);
        expect(error.status).to.equal(status);
        expect(error.code ?? undefined).to.equal(code);
        if (code !== undefined) expect(error.message).to.match(/^\d{3} [A-Z].*\.$/s);
        expect(error.headers?.get('x-svc-request-id')).to.match(new RegExp(`^${UUID}$`));
      }
    });

    it('in the middle of a stream is thrown by the iteration, with our code', async () => {
      service.upstream.programNext({ errorEvent: { afterChunks: 2, error: { message: 'Out of memory.' } } });
      const stream = await client.chat.completions.create({ model: MODEL, messages: HELLO, stream: true });
      let text = '';
      const reading = (async () => {
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      })();
      expect((await refusalOf(reading)).code).to.equal('generation_failed');
      expect(text).to.equal('Hello from ');
    });

    it('is got over by the client’s own retries', async () => {
      service.upstream.programNext({ status: 500 }, { status: 500 });
      const { choices } = await client.chat.completions.create({ model: MODEL, messages: HELLO });
      expect(choices[0]?.message.content).to.equal('Hello from the mock.');
      expectedCharges = [DEFAULT_COST_AP];
    });
  });

  describe('models', () => {
    it('are listed with their prices, and retrieved one by one', async () => {
      const ids: string[] = [];
      for await (const model of client.models.list()) ids.push(model.id);
      expect(ids).to.deep.equal([MODEL_WITH_BACKUP, MODEL]);
      const model = await client.models.retrieve(MODEL);
      expect(model).to.deep.include({
        id: MODEL,
        object: 'model',
        owned_by: 'svc',
        type: 'chat',
        endpoint: 'POST /v1/chat/completions',
        max_tokens: MAX_TOKENS,
        pricing: { unit: 'per_1k_tokens', ap_in_per_1k: AP_IN_PER_1K, ap_out_per_1k: AP_OUT_PER_1K },
      });
      expect(model.created).to.be.a('number');
      expect((await refusalOf(client.models.retrieve('no-such', ONCE))).code).to.equal('model_not_found');
    });
  });
});
