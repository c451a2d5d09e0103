/** A completion put together from its chunks. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { assembleCompletion } from '../../core/chat-assembly.ts';

const ENVELOPE = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 7, model: 'm' };
type Part = {
  index?: number;
  delta?: Record<string, unknown>;
  finish_reason?: string;
  logprobs?: Record<string, unknown>;
};

function assemble(...chunks: (Part | Part[] | Record<string, unknown>)[]): Record<string, unknown> {
  return assembleCompletion(
    chunks.map((chunk) => {
      if (!Array.isArray(chunk) && 'choices' in chunk) return { ...ENVELOPE, ...chunk } as never;
      const parts = (Array.isArray(chunk) ? chunk : [chunk]) as Part[];
      return { ...ENVELOPE, choices: parts.map((part) => ({ index: 0, ...part })) };
    }),
  );
}
const messageOf = (completion: Record<string, unknown>, index = 0) =>
  (completion.choices as { message: Record<string, unknown> }[])[index]?.message;

describe('a completion assembled from chunks', () => {
  it('has the chunks’ envelope as a whole answer has it', () => {
    const completion = assemble(
      { delta: { role: 'assistant', content: '' } },
      { delta: { content: 'Hi' } },
      { delta: {}, finish_reason: 'stop' },
    );
    expect(completion).to.deep.equal({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 7,
      model: 'm',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop', logprobs: null },
      ],
    });
  });

  it('appends text, reasoning and refusals, and does not repeat the role', () => {
    const completion = assemble(
      { delta: { role: 'assistant', content: 'a', reasoning_content: '1' } },
      { delta: { role: 'assistant', content: 'b', reasoning_content: '2', refusal: 'n' } },
      { delta: { content: null, refusal: 'o' } },
    );
    expect(messageOf(completion)).to.deep.equal({
      role: 'assistant',
      content: 'ab',
      reasoning_content: '12',
      refusal: 'no',
    });
  });

  it('keeps choices apart and in order, however they are mixed', () => {
    const completion = assemble(
      [{ index: 1, delta: { content: 'x' } }],
      [
        { index: 0, delta: { content: 'a' } },
        { index: 1, delta: { content: 'y' } },
      ],
      [
        { index: 0, delta: { content: 'b' }, finish_reason: 'stop' },
        { index: 1, finish_reason: 'length' },
      ],
    );
    expect(messageOf(completion, 0)?.content).to.equal('ab');
    expect(messageOf(completion, 1)?.content).to.equal('xy');
    expect(
      (completion.choices as { finish_reason: string }[]).map((choice) => choice.finish_reason),
    ).to.deep.equal(['stop', 'length']);
  });

  it('merges tool calls by index and leaves the index out', () => {
    const piece = (index: number, fields: object) => ({ delta: { tool_calls: [{ index, ...fields }] } });
    const completion = assemble(
      piece(0, { id: 'a', type: 'function', function: { name: 'f', arguments: '' } }),
      piece(1, { id: 'b', type: 'function', function: { name: 'g', arguments: '{' } }),
      piece(0, { function: { arguments: '{"x":' } }),
      piece(1, { id: 'b', type: 'function', function: { arguments: '}' } }),
      piece(0, { function: { arguments: '1}' } }),
    );
    expect(messageOf(completion)?.tool_calls).to.deep.equal([
      { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
      { id: 'b', type: 'function', function: { name: 'g', arguments: '{}' } },
    ]);
  });

  it('appends log-probabilities and deprecated function calls', () => {
    const completion = assemble(
      { delta: { function_call: { name: 'f', arguments: '{' } }, logprobs: { content: [{ token: 'a' }] } },
      { delta: { function_call: { arguments: '}' } }, logprobs: { content: [{ token: 'b' }] } },
    );
    expect(messageOf(completion)?.function_call).to.deep.equal({ name: 'f', arguments: '{}' });
    expect((completion.choices as { logprobs: unknown }[])[0]?.logprobs).to.deep.equal({
      content: [{ token: 'a' }, { token: 'b' }],
    });
  });

  it('takes usage, cost and other extras from the last chunk that has them', () => {
    const completion = assemble(
      { choices: [], usage: null, system_fingerprint: 'fp' },
      { choices: [], usage: { total_tokens: 3 }, ap_cost: 2 },
    );
    expect(completion).to.deep.include({
      usage: { total_tokens: 3 },
      ap_cost: 2,
      system_fingerprint: 'fp',
      choices: [],
    });
  });
});
