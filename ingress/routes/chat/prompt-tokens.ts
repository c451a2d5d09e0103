/**
 * What a prompt is held for, in tokens and without a tokenizer: byte-level encodings never make more tokens than UTF-8 bytes,
 * and the JSON body is at least as long as the text in it, so for text this is a bound. Media ride in the body as base64 but
 * count by rules of each provider's own: their bytes are taken out and replaced by the most we know a model to take. Nothing
 * is longer than the model's context. What the hold is too high by is returned at settlement.
 */

/** Providers wrap each message in a few tokens of their own, and prepend a template. */
const TOKENS_PER_MESSAGE = 8;
const TOKENS_PER_REQUEST = 64;
/** Some small models count 25,000 to 37,000 tokens for one picture, and up to 5,700 at low detail. */
const TOKENS_PER_IMAGE = 40_000;
const TOKENS_PER_LOW_IMAGE = 6_000;
/** Ten tokens a second; a second is taken for no less than 1,000 base64 characters (6 kbit/s). */
const BASE64_PER_AUDIO_TOKEN = 100;

/** Of the caller's validated body. */
interface Prompt {
  readonly messages: readonly object[];
  readonly web_search_options?: unknown;
}

interface Message {
  readonly content?: unknown;
  readonly audio?: { readonly id: string } | null;
}

interface Part {
  readonly type: string;
  readonly image_url?: { readonly url: string; readonly detail?: string };
  readonly input_audio?: { readonly data: string };
  /** Data in the body counts as the text it is written in. */
  readonly file?: { readonly file_id?: string };
}

export function promptTokenBound(body: Prompt, bodyBytes: number, contextTokens: number): number {
  let tokens = bodyBytes + TOKENS_PER_REQUEST + body.messages.length * TOKENS_PER_MESSAGE;
  for (const message of body.messages as readonly Message[]) {
    // it lies at the provider, and may be of any length
    if (message.audio != null) return contextTokens;
    for (const part of partsOf(message)) {
      if (part.file?.file_id !== undefined) return contextTokens;
      if (part.image_url !== undefined) {
        const { url, detail } = part.image_url;
        tokens += detail === 'low' ? TOKENS_PER_LOW_IMAGE : TOKENS_PER_IMAGE;
        if (url.startsWith('data:')) tokens -= url.length;
      } else if (part.input_audio !== undefined) {
        const { length } = part.input_audio.data;
        tokens += Math.ceil(length / BASE64_PER_AUDIO_TOKEN) - length;
      }
    }
  }
  return Math.min(tokens, contextTokens);
}

/** Whether the body's bytes bound the prompt: no media in it, and nothing that the provider adds by a search of its own. */
export function isBoundByText(body: Prompt): boolean {
  return (
    body.web_search_options === undefined &&
    (body.messages as readonly Message[]).every(
      (message) =>
        message.audio == null &&
        partsOf(message).every(
          (part) => part.image_url === undefined && part.input_audio === undefined && part.file === undefined,
        ),
    )
  );
}

function partsOf({ content }: Message): readonly Part[] {
  return Array.isArray(content) ? (content as readonly Part[]) : [];
}
