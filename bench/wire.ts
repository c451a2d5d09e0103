/**
 * What the load generator sends and what the mock upstream answers: model names, stream shape, request
 * bodies and the checks an answer must pass to be counted. Both sides of every benchmark share it.
 */

/** The mock waits as many milliseconds as the model's name says; the streaming model starts at once. */
export const MODELS = { instant: 'mock-0ms', slow: 'mock-50ms', stream: 'mock-stream' } as const;
export type ModelName = (typeof MODELS)[keyof typeof MODELS];

/** Image models of the mock, which waits as long as the name says. The second holds many requests at the provider at once. */
export const IMAGE_MODELS = {
  instant: 'mock-image-0ms',
  slow: 'mock-image-1000ms',
  /** Sends PNG whatever was asked for. */
  stubborn: 'mock-image-png-0ms',
} as const;
export const IMAGES_PER_REQUEST = 4;
export const IMAGE_SIDE = 1024;
/** Of the noise that stands for a picture: 2 MB of PNG at 1024×1024. */
export const NOISE_BLUR = 1.2;
/** A picture of 4 MB as it is sent to be edited, and one of over 20 MB. */
export const EDIT_SIZE = '1536x1024';
export const LARGE_SIZE = '3072x3072';
export const FORMATS = ['png', 'jpeg', 'webp'] as const;
export type Format = (typeof FORMATS)[number];

export const STREAM_CHUNK_COUNT = 20;
export const STREAM_CHUNK_INTERVAL_MS = 5;
export const MOCK_USAGE = {
  prompt_tokens: 12,
  completion_tokens: STREAM_CHUNK_COUNT,
  total_tokens: 32,
} as const;

/** Output cap sent with every request: small, so that a reservation never drains an account. */
const MAX_TOKENS = 64;

export function requestBody(model: ModelName): string {
  const isStreamed = model === MODELS.stream;
  return JSON.stringify({
    model,
    messages: [
      { role: 'system', content: 'You are a helpful assistant.' },
      { role: 'user', content: 'Say hello to the benchmark.' },
    ],
    max_tokens: MAX_TOKENS,
    ...(isStreamed ? { stream: true, stream_options: { include_usage: true } } : {}),
  });
}

interface CompletionLike {
  choices?: { message?: { content?: unknown }; delta?: { content?: unknown } }[];
  usage?: { total_tokens?: unknown } | null;
  error?: unknown;
}

/** True when the text is a chat completion with a message in it; anything else is counted as an error. */
export function isCompletion(body: string): boolean {
  try {
    const parsed = JSON.parse(body) as CompletionLike;
    return typeof parsed.choices?.[0]?.message?.content === 'string';
  } catch {
    return false;
  }
}

/** One `data:` event of a stream, read. */
export type StreamEvent =
  | { kind: 'content'; sentAtNs: bigint }
  | { kind: 'usage' }
  | { kind: 'done' }
  | { kind: 'other' }
  | { kind: 'invalid' };

/**
 * Reads the payload of a `data:` line. The mock writes its monotonic clock (`CLOCK_MONOTONIC` nanoseconds, the same
 * in every process of a Linux machine) as the content of each chunk, so the way through a gateway can be timed chunk by chunk.
 */
export function readStreamEvent(data: string): StreamEvent {
  if (data === '[DONE]') return { kind: 'done' };
  try {
    const parsed = JSON.parse(data) as CompletionLike;
    if (parsed.error !== undefined || !Array.isArray(parsed.choices)) return { kind: 'invalid' };
    const content = parsed.choices[0]?.delta?.content;
    if (typeof content === 'string' && content !== '')
      return { kind: 'content', sentAtNs: BigInt(content.trim()) };
    return parsed.usage ? { kind: 'usage' } : { kind: 'other' };
  } catch {
    return { kind: 'invalid' };
  }
}
