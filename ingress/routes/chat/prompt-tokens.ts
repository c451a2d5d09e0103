/**
 * The most tokens a prompt can be, without a tokenizer: byte-level encodings never make more tokens than UTF-8 bytes, and
 * the JSON body is at least as long as the text in it. Media ride in the body as base64 but count by other rules, so their
 * bytes are taken out and replaced by an upper bound of their own. What the bound is too high by is returned at settlement.
 */
import type { ChatRequest } from '../../schemas/chat.ts';

/** Providers wrap each message in a few tokens of their own, and prepend a template. */
const TOKENS_PER_MESSAGE = 8;
const TOKENS_PER_REQUEST = 64;
/** The most that the convention's large models charge for one picture at high detail. */
const TOKENS_PER_IMAGE = 2_600;
/** Audio is ten tokens a second; a second is never less than 2,000 base64 characters at the lowest common bit rate. */
const BASE64_PER_AUDIO_TOKEN = 200;

interface Part {
  readonly type: string;
  readonly image_url?: { readonly url: string };
  readonly input_audio?: { readonly data: string };
}

export function promptTokenBound(body: Pick<ChatRequest, 'messages'>, bodyBytes: number): number {
  let tokens = bodyBytes + TOKENS_PER_REQUEST + body.messages.length * TOKENS_PER_MESSAGE;
  for (const { content } of body.messages as readonly { content?: unknown }[]) {
    if (!Array.isArray(content)) continue;
    for (const part of content as readonly Part[]) {
      if (part.image_url !== undefined) {
        const inline = part.image_url.url.startsWith('data:') ? part.image_url.url.length : 0;
        tokens += TOKENS_PER_IMAGE - inline;
      } else if (part.input_audio !== undefined) {
        const { length } = part.input_audio.data;
        tokens += Math.ceil(length / BASE64_PER_AUDIO_TOKEN) - length;
      }
    }
  }
  return tokens;
}
