/** Token counts for what a provider did not count, and that counting takes a bounded time. */
import { expect } from 'chai';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import {
  countPromptTokens,
  countTextTokens,
  loadTokenizer,
  ProducedText,
} from '../../../workers/providers/tokens.ts';

describe('token counts', () => {
  before(() => loadTokenizer());

  it('are the tokenizer’s own for common texts', async () => {
    for (const text of [
      '',
      'Hello, world!',
      '吾輩は猫である。名前はまだ無い。',
      'const a = [1, 2, 3];\n\treturn a;\n',
      '🐈‍⬛ <|endoftext|> ok',
    ]) {
      expect(await countTextTokens(text)).to.equal(encode(text, { disallowedSpecial: new Set() }).length);
    }
    const long = 'The quick brown fox jumps over the lazy dog. '.repeat(2_000);
    expect(await countTextTokens(long)).to.be.closeTo(encode(long).length, 50);
  });

  it('are close for a text too long to be counted whole', async () => {
    const sentence = 'All work and no play makes Jack a dull boy. ';
    expect(await countTextTokens(sentence.repeat(100_000))).to.be.closeTo(11 * 100_000, 11_000);
  });

  it('of a long text go by all of it, not by how it begins', async () => {
    const [sparse, dense] = [' internationalization'.repeat(2_000), '?!;)'.repeat(20_000)];
    const tokens = encode(sparse).length + encode('?!;)'.repeat(1_000)).length * 20;
    for (const text of [sparse + dense, dense + sparse])
      expect(await countTextTokens(text)).to.be.closeTo(tokens, tokens * 0.15);
  });

  it('take a bounded time, whatever the text', async () => {
    const texts = ['a', '.', ' ', '\u0301', '龘', '😀', 'ab1'].map((unit) => unit.repeat(1_000_000));
    texts.push(
      Array.from({ length: 300_000 }, (_, index) =>
        String.fromCodePoint(0x4e00 + ((index * 7919) % 20_000)),
      ).join(''),
    );
    texts.push('\ud800'.repeat(100_000));
    for (const text of texts) {
      const startedAt = performance.now();
      expect(await countTextTokens(text)).to.be.greaterThan(0);
      expect(performance.now() - startedAt).to.be.below(500);
    }
  }).timeout(15_000);

  it('let the event loop turn while they run', async () => {
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 0);
    // of the slowest kind: a slice takes longer than the timer's millisecond
    await countTextTokens('\u0301'.repeat(200_000));
    clearInterval(timer);
    expect(turns).to.be.greaterThan(3);
  });

  it('of a prompt hold its messages, names, tools, schema and images', async () => {
    const plain = { messages: [{ role: 'user', content: 'Hello' }] };
    const base = await countPromptTokens(plain);
    // The convention's recipe: 3 a message, 3 for the reply, the role, the text.
    expect(base).to.equal(3 + 3 + 1 + 1);
    const image = (detail: string) => ({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hello' },
            { type: 'image_url', image_url: { url: 'u', detail } },
          ],
        },
      ],
    });
    expect(await countPromptTokens(image('low'))).to.equal(base + 85);
    expect(await countPromptTokens(image('high'))).to.equal(base + 765);
    expect(await countPromptTokens({ messages: [{ role: 'user', name: 'Bob', content: 'Hello' }] })).to.equal(
      base + 2,
    );
    const tool = { type: 'function', function: { name: 'f', description: 'Does things.', parameters: {} } };
    expect(await countPromptTokens({ ...plain, tools: [tool] })).to.be.greaterThan(base + 10);
    const format = { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' } } };
    expect(await countPromptTokens({ ...plain, response_format: format })).to.be.greaterThan(base + 5);
  });

  it('of a prompt hold what is not content too', async () => {
    const base = await countPromptTokens({ messages: [{ role: 'assistant', content: 'Hello' }] });
    const words = 'one two three four five';
    const message = (fields: object) => ({
      messages: [{ role: 'assistant', content: 'Hello', ...fields }],
    });
    for (const body of [
      message({ refusal: words }),
      message({ reasoning_content: words }),
      message({ function_call: { name: 'f', arguments: words } }),
      message({ tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: words } }] }),
      { ...message({}), functions: [{ name: 'f', description: words }] },
      { ...message({}), prediction: { type: 'content', content: words } },
      { ...message({}), prediction: { type: 'content', content: [{ type: 'text', text: words }] } },
    ]) {
      expect(await countPromptTokens(body), JSON.stringify(body)).to.be.within(base + 5, base + 20);
    }
  });

  it('of what was produced hold what is not content too', async () => {
    const words = 'one two three four five';
    for (const delta of [
      { refusal: words },
      { reasoning_content: words },
      { function_call: { name: 'f', arguments: words } },
      { tool_calls: [{ index: 0, function: { name: 'f', arguments: words } }] },
      { tool_calls: [{ index: 0, custom: { name: 'f', input: words } }] },
      { audio: { id: 'audio-1', transcript: words } },
    ]) {
      const produced = new ProducedText();
      produced.add({ choices: [{ index: 0, delta }] });
      expect(await produced.countTokens(), JSON.stringify(delta)).to.be.within(5, 7);
      expect(produced.pieces).to.equal(1);
    }
  });

  it('of malformed bodies are numbers too', async () => {
    for (const body of [
      {},
      { messages: 'x' },
      { messages: [null, 1, {}] },
      { messages: [{ content: [{ type: 'image_url' }, { type: 'file' }], function_call: 1 }] },
      { functions: [null, 1], prediction: 'x' },
    ]) {
      expect(await countPromptTokens(body))
        .to.be.a('number')
        .that.satisfies(Number.isInteger);
    }
  });

  it('of what was produced are alike for a completion and its chunks', async () => {
    const whole = new ProducedText();
    const calls = [{ index: 0, function: { name: 'get_weather', arguments: '{"city":"Kyoto"}' } }];
    whole.add({
      choices: [
        { index: 0, message: { content: 'Hello there' } },
        { index: 1, message: { content: null, tool_calls: calls } },
      ],
    });
    const streamed = new ProducedText();
    for (const content of ['Hel', 'lo', ' the', 're'])
      streamed.add({ choices: [{ index: 0, delta: { content } }] });
    streamed.add({
      choices: [
        { index: 1, delta: { tool_calls: [{ index: 0, function: { name: 'get_weather', arguments: '' } }] } },
      ],
    });
    streamed.add({
      choices: [
        { index: 1, delta: { tool_calls: [{ index: 0, function: { arguments: '{"city":"Kyoto"}' } }] } },
      ],
    });
    streamed.add({ choices: [] });
    expect(await streamed.countTokens()).to.equal(await whole.countTokens());
    expect(await whole.countTokens()).to.be.greaterThan(6);
    expect(await new ProducedText().countTokens()).to.equal(0);
  });
});
