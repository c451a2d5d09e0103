/**
 * An upstream of the OpenAI convention for tests: `/v1/chat/completions`, `/v1/images/generations`, `/v1/images/edits`
 * (streamed or not), `/v1/audio/speech`, `/v1/audio/transcriptions` and `/v1/models`, and of the ElevenLabs convention:
 * `/v1/text-to-speech/{voice}` (`/stream` or not) and `/v1/voices`, in the real wire formats, on an ephemeral port of
 * 127.0.0.1. One instance per test file; instances do not know each other.
 *
 *   const upstream = await startMockUpstream();           // upstream.baseUrl = http://127.0.0.1:PORT/v1
 *   upstream.program('slow', { latencyMs: 50 });          // every call whose `model` is "slow"
 *   upstream.programNext({ status: 429, retryAfter: '7' });   // the next call, whatever its model; queues up
 *   const call = await upstream.waitForCall();            // the next call not yet waited for (resolves once its body is in)
 *   call.body; call.files; call.headers; call.model; await call.aborted; await call.finished; call.bytesWritten;
 *   await upstream.waitForAbort();                        // the next aborted call not yet waited for
 *   upstream.calls; upstream.count('slow'); upstream.reset(); await upstream.close();
 *
 * Behaviours combine; the default answers "Hello from the mock." at once, plain pictures of the asked size, or
 * audio fifteen characters a second long, with true-looking usage. See `MockBehaviour`.
 * To hold an answer until the test says so, pass `gate: somePromise` rather than guessing a latency.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { answerCall } from './mock-upstream-answers.ts';
import { pictureOf, readForm } from './mock-upstream-images.ts';
import { isElevenLabs, MOCK_VOICES } from './mock-upstream-speech.ts';
import {
  type MockBehaviour,
  type MockCall,
  type MockFile,
  sendJson,
  sendText,
} from './mock-upstream-wire.ts';

export interface MockUpstream {
  readonly origin: string;
  readonly baseUrl: string;
  readonly calls: readonly MockCall[];
  /** Model ids answered by `/v1/models`. */
  models: string[];
  /** The bearer credential asked for; `undefined` accepts any. A wrong one answers 401. */
  credential: string | undefined;
  program(model: string, behaviour: MockBehaviour): void;
  programNext(...behaviours: readonly MockBehaviour[]): void;
  count(model?: string): number;
  waitForCall(): Promise<MockCall>;
  waitForAbort(): Promise<MockCall>;
  /** TCP connections accepted so far: a reused connection is not counted again. */
  connectionCount(): number;
  reset(): void;
  close(): Promise<void>;
}

const CALLED = /^\/v1\/(chat\/completions|images\/generations|images\/edits|audio\/|text-to-speech\/)/;

/** A queue whose items can be awaited before they exist. */
class Arrivals<Item> {
  #items: Item[] = [];
  #waiters: ((item: Item) => void)[] = [];

  push(item: Item): void {
    const waiter = this.#waiters.shift();
    if (waiter) waiter(item);
    else this.#items.push(item);
  }

  next(): Promise<Item> {
    const item = this.#items.shift();
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  clear(): void {
    this.#items = [];
  }
}

export async function startMockUpstream(options: { credential?: string } = {}): Promise<MockUpstream> {
  const sockets = new Set<Socket>();
  const programs = new Map<string, MockBehaviour>();
  const failuresLeft = new Map<MockBehaviour, number>();
  const arrivals = new Arrivals<MockCall>();
  const aborts = new Arrivals<MockCall>();
  let next: MockBehaviour[] = [];
  let calls: MockCall[] = [];
  let connections = 0;

  function behaviourOf(model: string | undefined): MockBehaviour {
    const behaviour = next.shift() ?? programs.get(model ?? '') ?? {};
    if (behaviour.failTimes === undefined) return behaviour;
    const left = failuresLeft.get(behaviour) ?? behaviour.failTimes;
    failuresLeft.set(behaviour, left - 1);
    if (left > 0) return behaviour;
    const { status: _status, reset: _reset, ...answersWell } = behaviour;
    return answersWell;
  }

  function record(
    request: IncomingMessage,
    response: ServerResponse,
    body: Record<string, unknown>,
    files: readonly MockFile[],
  ): MockCall {
    const aborted = Promise.withResolvers<void>();
    const finished = Promise.withResolvers<void>();
    const call: MockCall = {
      index: calls.length,
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      model: [body.model, body.model_id].find((model) => typeof model === 'string') as string | undefined,
      body,
      files,
      receivedAt: performance.now(),
      abortedAt: undefined,
      bytesWritten: 0,
      aborted: aborted.promise,
      finished: finished.promise,
    };
    response.on('close', () => {
      if (response.writableFinished) return finished.resolve();
      call.abortedAt = performance.now();
      aborts.push(call);
      aborted.resolve();
    });
    calls.push(call);
    arrivals.push(call);
    return call;
  }

  /** Paths that are answered without being a call of the test. */
  function answerRead(request: IncomingMessage, response: ServerResponse): void {
    const behaviour = next.shift() ?? {};
    const [, index, size] = /^\/v1\/files\/(\d+)-(\d+x\d+)\.png$/.exec(request.url ?? '') ?? [];
    if (behaviour.hang === 'before-headers') return;
    if (behaviour.status !== undefined) {
      const error = behaviour.error ?? {};
      sendJson(response, behaviour.status, { error, detail: error }, behaviour);
    } else if (typeof behaviour.rawBody === 'string')
      sendText(response, 200, behaviour.rawBody, behaviour.contentType);
    else if (size !== undefined) {
      response.writeHead(200, { 'content-type': 'image/png' });
      response.end(pictureOf(size, Number(index)));
    } else if (isElevenLabs(request.url ?? '')) {
      sendJson(response, 200, { voices: MOCK_VOICES }, behaviour);
    } else if (request.headers['xi-api-key'] !== undefined) {
      // The second convention's list of models is the list itself.
      const models = upstream.models.map((id) => ({ model_id: id, name: id }));
      sendJson(response, 200, models, behaviour);
    } else {
      const data = upstream.models.map((id) => ({ id, object: 'model', created: 0, owned_by: 'mock' }));
      sendJson(response, 200, { object: 'list', data }, behaviour);
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse, bytes: Buffer): Promise<void> {
    const refuse = (status: number, message: string, code: string | null) =>
      sendJson(response, status, { error: { message, type: 'invalid_request_error', code, param: null } });
    // Files are open to whoever knows their address.
    if (request.method === 'GET' && request.url?.startsWith('/v1/files/'))
      return answerRead(request, response);
    if (
      upstream.credential !== undefined &&
      request.headers.authorization !== `Bearer ${upstream.credential}` &&
      request.headers['xi-api-key'] !== upstream.credential
    )
      return refuse(401, 'Incorrect API key provided.', 'invalid_api_key');
    if (request.method === 'GET' && /^\/v1\/(models|voices)/.test(request.url ?? ''))
      return answerRead(request, response);
    if (request.method !== 'POST' || !CALLED.test(request.url ?? ''))
      return refuse(404, 'No such path.', null);
    const isForm = request.headers['content-type']?.startsWith('multipart/form-data') === true;
    const { body, files } = isForm
      ? await readForm(request.headers['content-type'] ?? '', bytes)
      : { body: JSON.parse(bytes.toString('utf8')) as Record<string, unknown>, files: [] };
    const call = record(request, response, body, files);
    return answerCall(call, response, behaviourOf(call.model));
  }

  const server: Server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      answer(request, response, Buffer.concat(parts)).catch((error: unknown) => {
        // The client went away while an answer was being written: the call's `aborted` tells the test.
        if (!response.destroyed) response.destroy(error as Error);
      });
    });
  });
  server.keepAliveTimeout = 60_000;
  server.on('connection', (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const upstream: MockUpstream = {
    origin,
    baseUrl: `${origin}/v1`,
    get calls() {
      return calls;
    },
    models: ['gpt-large', 'gpt-small'],
    credential: options.credential,
    program: (model, behaviour) => void programs.set(model, behaviour),
    programNext: (...behaviours) => void next.push(...behaviours),
    count: (model) =>
      model === undefined ? calls.length : calls.filter((call) => call.model === model).length,
    waitForCall: () => arrivals.next(),
    waitForAbort: () => aborts.next(),
    connectionCount: () => connections,
    reset() {
      calls = [];
      next = [];
      programs.clear();
      arrivals.clear();
      aborts.clear();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
  return upstream;
}
