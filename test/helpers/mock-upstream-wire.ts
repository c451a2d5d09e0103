/** What the mock upstream can be told and records of a call, and how it writes JSON. See `mock-upstream.ts`. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';

export interface MockBehaviour {
  /** Wait this long before the response headers. */
  readonly latencyMs?: number;
  /** Wait for this before the response headers. */
  readonly gate?: Promise<unknown>;
  /** The answer's text; for a stream it is split into `chunks` of a word each unless those are given. */
  readonly content?: string;
  readonly chunks?: readonly string[];
  readonly chunkSpacingMs?: number;
  /** Awaited before each content chunk after the first; `index` counts from 1. */
  readonly chunkGate?: (index: number) => Promise<unknown>;
  readonly finishReason?: string;
  /** `'missing'`, or any value put where `usage` stands (lies included). Default: plausible counts. */
  readonly usage?: unknown;
  /** Merged over the completion, or over every chunk. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** Never answer: before the headers, or (streams) after this many content chunks. The socket stays open. */
  readonly hang?: 'before-headers' | number;
  /** Answer with this status and an error body. */
  readonly status?: number;
  /** The `error` object of an error status; `message`, `type`, `code`, `param`. */
  readonly error?: Readonly<Record<string, unknown>>;
  readonly retryAfter?: string;
  /** Apply `status` only to the first N calls of this behaviour, then answer well. */
  readonly failTimes?: number;
  /** Close the TCP connection: before the headers, or (streams) after this many content chunks. */
  readonly reset?: 'before-headers' | number;
  /** End a stream properly on the HTTP level after this many content chunks: no finish_reason, no [DONE]. */
  readonly cutAfterChunks?: number;
  /** Leave out the `[DONE]` line although every choice finished. */
  readonly omitDone?: boolean;
  /** Leave out the finishing chunk although `[DONE]` is sent. */
  readonly omitFinish?: boolean;
  /** Send this `error` object after this many content chunks (as `event: error` when `named`) and end. */
  readonly errorEvent?: {
    readonly afterChunks: number;
    readonly error: Readonly<Record<string, unknown>>;
    readonly named?: boolean;
  };
  /** Send exactly this body (a string array is written piece by piece, one write each) with status 200 or `status`. */
  readonly rawBody?: string | Buffer | readonly (string | Buffer)[];
  /** With `rawBody`: leave the answer open after it until this. */
  readonly rawBodyGate?: Promise<unknown>;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Streams: write this many bytes of content chunks as fast as the reader takes them. */
  readonly firehoseBytes?: number;
  /** Replaces the answer's `choices` (and is not streamed piecewise: one delta per choice). */
  readonly choices?: readonly Readonly<Record<string, unknown>>[];
}

export interface MockCall {
  readonly index: number;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly model: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
  readonly receivedAt: number;
  /** `performance.now()` when the client closed the connection before the answer was complete. */
  abortedAt: number | undefined;
  /** Bytes handed to the socket so far (its own buffering included). */
  bytesWritten: number;
  /** Resolves when the client goes away before the end; never otherwise. */
  readonly aborted: Promise<void>;
  /** Resolves when the whole answer was handed over. */
  readonly finished: Promise<void>;
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  behaviour: MockBehaviour = {},
): void {
  const headers: Record<string, string> = { ...behaviour.headers };
  if (behaviour.retryAfter !== undefined) headers['retry-after'] = behaviour.retryAfter;
  sendText(response, status, JSON.stringify(body), behaviour.contentType, headers);
}

export function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  contentType = 'application/json',
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}
