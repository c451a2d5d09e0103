/** What the sandbox provider answers: its mark, caps, stops, tools, schemas, log-probabilities, directives. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { makeProvider } from '../../../workers/providers/index.ts';
import type { ChatCall, ProviderError } from '../../../workers/providers/provider.ts';
import { countPromptTokens, countTextTokens, loadTokenizer } from '../../../workers/providers/tokens.ts';
import { choicesOf, collect, contentOf, failureOf, finishReasonsOf } from './conformance.ts';

interface Message {
  content: string | null;
  tool_calls?: {
    id: string;
    type: string;
    function: { name: string; arguments: string };
    custom: { name: string; input: string };
  }[];
}

const provider = makeProvider({
  name: 'sandbox',
  kind: 'sandbox',
  baseUrl: undefined,
  credential: undefined,
});
const chat = provider.chat ?? expect.fail('no chat');

function call(content: unknown, body: Record<string, unknown> = {}, outputCapTokens = 500): ChatCall {
  const messages = [{ role: 'user', content }];
  return {
    requestId: 'r1',
    upstreamModel: 'sandbox',
    outputCapTokens,
    signal: new AbortController().signal,
    body: { messages, ...body },
  };
}

async function answer(content: unknown, body: Record<string, unknown> = {}, outputCapTokens = 500) {
  const { completion, usage } = await chat.complete(call(content, body, outputCapTokens));
  const choices = choicesOf(completion);
  const choice = choices[0] ?? {};
  return {
    completion,
    usage,
    choices,
    choice,
    message: choice.message as Message,
    reason: choice.finish_reason,
  };
}

function tool(name: string, parameters?: unknown) {
  return { type: 'function', function: { name, ...(parameters === undefined ? {} : { parameters }) } };
}

describe('the sandbox chat provider', () => {
  it('says that it is the sandbox, repeats the last user message, and answers the same again', async () => {
    const first = await answer('What is 猫? 🐈‍⬛');
    expect(first.message.content).to.equal('[sandbox] You said: What is 猫? 🐈‍⬛');
    expect(first.completion).to.include({ system_fingerprint: 'sandbox', model: 'sandbox' });
    expect((await answer('What is 猫? 🐈‍⬛')).message).to.deep.equal(first.message);
  });

  it('counts its usage with the tokenizer', async () => {
    const { usage, message } = await answer('How many tokens are these?', { n: 2 });
    const each = [
      await countTextTokens(message.content ?? ''),
      await countTextTokens('[sandbox] (choice 2) You said: How many tokens are these?'),
    ];
    expect(usage?.completionTokens).to.equal((each[0] ?? 0) + (each[1] ?? 0));
    expect(usage?.promptTokens).to.equal(
      await countPromptTokens({ messages: [{ role: 'user', content: 'How many tokens are these?' }] }),
    );
    expect(usage?.raw.total_tokens).to.equal((usage?.promptTokens ?? 0) + (usage?.completionTokens ?? 0));
  });

  it('never says more tokens than the cap, and says that the cap ended it', async () => {
    for (const cap of [1, 2, 7, 16]) {
      const { usage, reason, message } = await answer('猫🐈‍⬛猫🐈‍⬛ a long story, please', {}, cap);
      expect(reason).to.equal('length');
      expect(usage?.completionTokens).to.be.at.most(cap);
      expect(message.content).to.satisfy((text: string) => text.isWellFormed() && !text.includes('\ufffd'));
      expect(
        '[sandbox] You said: 猫🐈‍⬛猫🐈‍⬛ a long story, please'.startsWith(message.content ?? '?'),
      ).to.equal(true);
    }
    expect((await answer('[[sandbox:words=300]]', {}, 100)).usage?.completionTokens).to.equal(100);
    expect((await answer('[[sandbox:words=300]]', {}, 10_000)).message.content?.split(' ')).to.have.length(
      301,
    );
  });

  it('stops before a stop sequence', async () => {
    expect((await answer('one two three', { stop: 'two' })).message.content).to.equal(
      '[sandbox] You said: one ',
    );
    expect((await answer('one two three', { stop: ['three', ' two'] })).message.content).to.equal(
      '[sandbox] You said: one',
    );
  });

  it('says how many images it was sent', async () => {
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
    const { message } = await answer([{ type: 'text', text: 'Look' }, image, image]);
    expect(message.content).to.equal('[sandbox] You said: Look I was sent 2 images.');
  });

  describe('tools', () => {
    const parameters = {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } },
      required: ['city', 'days'],
    };
    const tools = [tool('get_weather', parameters), tool('get_time')];

    it('are called when the user names them, with arguments valid for the schema', async () => {
      const { message, reason, usage } = await answer('Please use get_weather for Kyoto', { tools });
      expect(reason).to.equal('tool_calls');
      expect(message.content).to.equal(null);
      expect(message.tool_calls?.map((made) => made.function.name)).to.deep.equal(['get_weather']);
      const input: unknown = JSON.parse(message.tool_calls?.[0]?.function.arguments ?? '');
      expect(new Ajv2020().validate(parameters, input)).to.equal(true);
      expect(usage?.completionTokens).to.be.greaterThan(3);
    });

    it('are called as tool_choice says', async () => {
      const namesFor = async (content: string, toolChoice: unknown, more = {}) =>
        (await answer(content, { tools, tool_choice: toolChoice, ...more })).message.tool_calls?.map(
          (made) => made.function.name,
        );
      expect(await namesFor('Hello', 'auto')).to.equal(undefined);
      expect(await namesFor('get_time', 'none')).to.equal(undefined);
      expect(await namesFor('Hello', 'required')).to.deep.equal(['get_weather']);
      expect(await namesFor('Hello', { type: 'function', function: { name: 'get_time' } })).to.deep.equal([
        'get_time',
      ]);
      expect(await namesFor('get_weather and get_time', 'auto')).to.deep.equal(['get_weather', 'get_time']);
      expect(
        await namesFor('get_weather and get_time', 'auto', { parallel_tool_calls: false }),
      ).to.deep.equal(['get_weather']);
      const allowed = {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'get_time' } }] },
      };
      expect(await namesFor('Hello', allowed)).to.deep.equal(['get_time']);
    });

    it('are not called again once they answered', async () => {
      const messages = [
        { role: 'user', content: 'use get_weather' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: 'sunny' },
      ];
      expect((await answer('', { tools, messages })).message.content).to.equal(
        '[sandbox] You said: use get_weather The tool answered: sunny',
      );
    });

    it('take as long for many choices as for one, and are made no further than the cap', async () => {
      const wide = { type: 'array', minItems: 2_000, items: { type: 'integer' } };
      const one = [tool('tool_0', { type: 'object', properties: { list: wide }, required: ['list'] })];
      const many = Array.from({ length: 512 }, (_, index) => tool(`tool_${index}`, wide));
      const said = many.map((made) => made.function.name).join(' ');
      const startedAt = performance.now();
      const { choices } = await answer(said, { tools: many, n: 128 }, 50);
      expect(performance.now() - startedAt).to.be.below(2_000);
      const ids = choices.map((made) => (made.message as Message).tool_calls?.[0]?.id);
      expect(new Set(ids).size).to.equal(128);
      expect((await failureOf(answer(said, { tools: many }, 100_000))) as ProviderError).to.include({
        kind: 'rejected',
        publicMessage: '[sandbox] The JSON schema asks for a larger or deeper value than the sandbox makes.',
      });
      const whole = await answer('tool_0', { tools: one, n: 8 }, 100_000);
      expect(
        new Set(whole.choices.map((made) => (made.message as Message).tool_calls?.[0]?.function.arguments))
          .size,
      ).to.equal(1);
    });

    it('may be custom ones', async () => {
      const { message } = await answer('run sql_query now', {
        tools: [{ type: 'custom', custom: { name: 'sql_query' } }],
      });
      expect(message.tool_calls?.[0]).to.deep.include({
        type: 'custom',
        custom: { name: 'sql_query', input: '[sandbox] run sql_query now' },
      });
    });
  });

  it('answers JSON when JSON is asked for', async () => {
    const { message } = await answer('Hello "there"', { response_format: { type: 'json_object' } });
    expect(JSON.parse(message.content ?? '')).to.deep.equal({
      sandbox: true,
      message: '[sandbox] You said: Hello "there"',
    });
    const schema = {
      type: 'object',
      properties: { name: { type: 'string' } },
      required: ['name'],
      additionalProperties: false,
    };
    const structured = await answer('Hello', {
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema, strict: true } },
    });
    expect(JSON.parse(structured.message.content ?? '')).to.deep.equal({ name: '[sandbox] text' });
  });

  it('gives log-probabilities of each token, the likeliest first', async () => {
    const { choice, message } = await answer('probably', { logprobs: true, top_logprobs: 5 });
    const entries = (
      choice.logprobs as {
        content: {
          token: string;
          logprob: number;
          bytes: number[];
          top_logprobs: { token: string; logprob: number }[];
        }[];
      }
    ).content;
    expect(entries.map((entry) => entry.token).join('')).to.equal(message.content);
    for (const { token, logprob, bytes, top_logprobs: top } of entries) {
      expect(Buffer.from(bytes).toString()).to.equal(token);
      expect(top).to.have.length(5);
      expect(top[0]).to.deep.include({ token, logprob });
      expect(top.reduce((sum, other) => sum + Math.exp(other.logprob), 0)).to.be.at.most(1);
    }
  });

  it('refuses answers that would fill the memory, and names the parameter', async () => {
    const refusalOf = async (body: Record<string, unknown>) => {
      const asked = call('[[sandbox:words=10000]]', body, 20_000);
      const whole = (await failureOf(chat.complete(asked))) as ProviderError;
      const streamed = (await failureOf(collect(chat.stream(asked)))) as ProviderError;
      expect(streamed.message).to.equal(whole.message);
      expect(whole.kind).to.equal('rejected');
      expect(whole.publicMessage).to.match(/^\[sandbox\] All choices together/);
      return whole.param;
    };
    expect(await refusalOf({ n: 16, logprobs: true, top_logprobs: 20 })).to.equal('top_logprobs');
    expect(await refusalOf({ n: 1, logprobs: true, top_logprobs: 20 })).to.equal('top_logprobs');
    expect(await refusalOf({ n: 128 })).to.equal('n');
    expect((await answer('[[sandbox:words=10000]]', { n: 16 }, 20_000)).choices).to.have.length(16);
  });

  it('refuses a prompt that is longer than the context', async () => {
    const content = 'word '.repeat(200);
    const tokens = await countPromptTokens({ messages: [{ role: 'user', content }] });
    const error = await failureOf(chat.complete({ ...call(content), promptCapTokens: tokens - 1 }));
    expect(error).to.include({
      kind: 'rejected',
      param: 'messages',
      publicMessage: `[sandbox] The messages have ${tokens} tokens, more than the model's context.`,
    });
    await chat.complete({ ...call(content), promptCapTokens: tokens });
  });

  it('answers one of the tokens that a logit bias forces, with probabilities over all of them', async () => {
    const { encode } = await loadTokenizer();
    const labels = ['A', 'B', 'C'];
    const bias = Object.fromEntries(labels.map((label) => [String(encode(label)[0]), 100]));
    const { choice, message, usage } = await answer(
      'Which?',
      { logit_bias: bias, logprobs: true, top_logprobs: 20 },
      1,
    );
    expect(message.content).to.be.oneOf(labels);
    expect(usage?.completionTokens).to.equal(1);
    const [entry] = (choice.logprobs as { content: { top_logprobs: { token: string }[] }[] }).content;
    expect(entry?.top_logprobs.map((other) => other.token)).to.have.members(labels);
  });

  describe('directives', () => {
    it('are not repeated in the answer', async () => {
      expect((await answer('Hello [[sandbox:delay=1]]')).message.content).to.equal(
        '[sandbox] You said: Hello',
      );
    });

    it('that are unknown are told', async () => {
      for (const directive of [
        '[[sandbox:dance]]',
        '[[sandbox:error=sometimes]]',
        '[[sandbox:delay=soon]]',
        '[[sandbox:delay]]',
      ]) {
        const error = (await failureOf(answer(directive))) as ProviderError;
        expect(error).to.include({
          kind: 'rejected',
          publicMessage: `[sandbox] Unknown directive: ${directive}`,
        });
      }
    });

    it('count only in the last user message', async () => {
      const messages = [
        { role: 'user', content: '[[sandbox:error=unavailable]]' },
        { role: 'user', content: 'Again' },
      ];
      expect((await answer('', { messages })).message.content).to.equal('[sandbox] You said: Again');
    });

    it('can delay the answer', async () => {
      const startedAt = performance.now();
      await answer('[[sandbox:delay=60]]');
      expect(performance.now() - startedAt).to.be.at.least(59);
    });
  });

  it('streams long answers in larger chunks rather than many', async () => {
    const chunks = await collect(chat.stream(call('[[sandbox:words=400]]', { logprobs: true }, 5_000)));
    expect(chunks.length).to.be.within(30, 64);
    expect(contentOf(chunks, 0)).to.match(/^\[sandbox\] alpha .* delta$/);
    expect(finishReasonsOf(chunks)).to.deep.equal(['stop']);
  });
});
