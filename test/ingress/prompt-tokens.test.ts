/** The bound of a prompt's tokens that a chat's hold is made of. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { isBoundByText, promptTokenBound } from '../../ingress/routes/chat/prompt-tokens.ts';

const CONTEXT_TOKENS = 1_000_000;
/** 64 for the request, 8 for its one message. */
const FRAME_TOKENS = 64 + 8;

const PICTURE = `data:image/png;base64,${'A'.repeat(50_000)}`;
const bound = (content: unknown, contextTokens = CONTEXT_TOKENS): number => {
  const messages = [{ role: 'user', content }];
  return promptTokenBound({ messages }, lengthOf(content), contextTokens);
};
const lengthOf = (content: unknown): number => Buffer.byteLength(JSON.stringify(content));

describe('the bound of a prompt', () => {
  it('is the bytes of a text', () => {
    expect(bound('Hello')).to.equal(lengthOf('Hello') + FRAME_TOKENS);
  });

  it('is never above the model’s context', () => {
    expect(bound('x'.repeat(5000), 1000)).to.equal(1000);
    expect(bound([{ type: 'image_url', image_url: { url: PICTURE } }], 8000)).to.equal(8000);
  });

  for (const [detail, tokens] of [
    [undefined, 40_000],
    ['auto', 40_000],
    ['high', 40_000],
    ['original', 40_000],
    ['low', 6_000],
  ] as const) {
    it(`takes a picture of detail ${detail ?? 'unsaid'} for ${tokens} tokens, in the body or at an address`, () => {
      for (const url of [PICTURE, 'https://example.org/cat.png']) {
        const content = [{ type: 'image_url', image_url: { url, ...(detail && { detail }) } }];
        const inline = url === PICTURE ? PICTURE.length : 0;
        expect(bound(content)).to.equal(lengthOf(content) - inline + tokens + FRAME_TOKENS);
      }
    });
  }

  it('takes a hundred characters of audio for a token', () => {
    const content = [{ type: 'input_audio', input_audio: { data: 'B'.repeat(20_050), format: 'mp3' } }];
    expect(bound(content)).to.equal(lengthOf(content) - 20_050 + 201 + FRAME_TOKENS);
  });

  it('takes a file in the body for text, and what lies at the provider for the whole context', () => {
    const inline = [
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
    ];
    expect(bound(inline)).to.equal(lengthOf(inline) + FRAME_TOKENS);
    expect(bound([{ type: 'file', file: { file_id: 'file-1' } }])).to.equal(CONTEXT_TOKENS);
    const messages = [
      { role: 'assistant', audio: { id: 'audio-1' } },
      { role: 'user', content: 'Again?' },
    ];
    expect(promptTokenBound({ messages }, 100, CONTEXT_TOKENS)).to.equal(CONTEXT_TOKENS);
  });

  it('is by text alone only where there is nothing else', () => {
    const isText = (body: object) => isBoundByText({ messages: [], ...body });
    const user = (part: object) => ({ messages: [{ role: 'user', content: [part] }] });
    expect(isText({ messages: [{ role: 'user', content: 'Hello' }] })).to.equal(true);
    expect(isText(user({ type: 'text', text: 'Hello' }))).to.equal(true);
    expect(isText({ messages: [{ role: 'assistant', content: null, audio: null }] })).to.equal(true);
    expect(isText(user({ type: 'image_url', image_url: { url: 'u' } }))).to.equal(false);
    expect(isText(user({ type: 'input_audio', input_audio: { data: 'B', format: 'wav' } }))).to.equal(false);
    expect(isText(user({ type: 'file', file: { file_data: 'A' } }))).to.equal(false);
    expect(isText({ messages: [{ role: 'assistant', audio: { id: 'audio-1' } }] })).to.equal(false);
    expect(isText({ web_search_options: {} })).to.equal(false);
  });
});
