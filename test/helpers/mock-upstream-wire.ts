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
  /** For calls that ask for pictures. A stream's "content chunks" are then its events. */
  readonly images?: MockImages;
  /** For calls that ask for speech: its "content chunks" are pieces of audio. */
  readonly audio?: { readonly pieces: readonly Buffer[] };
}

/** How the pictures of an answer differ from the good ones that were asked for. */
export interface MockImages {
  /** Instead of `n`. */
  readonly count?: number;
  /** `<width>x<height>` instead of the size asked for. */
  readonly size?: string;
  /** Instead of the picture's base64, `null` included. */
  readonly b64?: unknown;
  /** Answer with addresses: of the mock's own files, or this one. */
  readonly url?: 'own' | string;
  /** Sent along with each. */
  readonly revisedPrompt?: string;
}

/** A file of a form. */
export interface MockFile {
  readonly field: string;
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

export interface MockCall {
  readonly index: number;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly model: string | undefined;
  /** The JSON object, or the text fields of a form. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly files: readonly MockFile[];
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

/** Writes and waits for the reader where the socket says so. */
export async function write(call: MockCall, response: ServerResponse, text: string | Buffer): Promise<void> {
  if (response.destroyed) throw new Error('The client went away.');
  call.bytesWritten += Buffer.byteLength(text);
  if (response.write(text)) return;
  await new Promise<void>((resolve, reject) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', closed);
      resolve();
    };
    const closed = () => {
      response.off('drain', done);
      reject(new Error('The client went away.'));
    };
    response.once('drain', done);
    response.once('close', closed);
  });
}
