/**
 * A fast upstream of the chat completions and images wire formats, run as its own process: it answers after the delay in the
 * model's name, or streams chunks at a fixed pace with a usage chunk at the end. It checks nothing and keeps no request.
 * Listens on a free loopback port and reports it to the parent over IPC.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerImages } from './mock-images.ts';
import { MOCK_USAGE, STREAM_CHUNK_COUNT, STREAM_CHUNK_INTERVAL_MS } from './wire.ts';

const CREATED_SECONDS = 1_700_000_000;
const MAX_BODY_BYTES = 1_000_000;

function completion(model: string): string {
  return JSON.stringify({
    id: 'chatcmpl-mock',
    object: 'chat.completion',
    created: CREATED_SECONDS,
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hello from the mock upstream.' },
        finish_reason: 'stop',
      },
    ],
    usage: MOCK_USAGE,
  });
}

function chunkEvent(model: string, fields: Record<string, unknown>): string {
  const chunk = {
    id: 'chatcmpl-mock',
    object: 'chat.completion.chunk',
    created: CREATED_SECONDS,
    model,
    ...fields,
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

function contentEvent(model: string): string {
  const content = `${process.hrtime.bigint()} `;
  return chunkEvent(model, { choices: [{ index: 0, delta: { content }, finish_reason: null }] });
}

function stream(response: ServerResponse, model: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.write(contentEvent(model));
  let sentCount = 1;
  const timer = setInterval(() => {
    if (sentCount < STREAM_CHUNK_COUNT) {
      sentCount += 1;
      response.write(contentEvent(model));
      return;
    }
    clearInterval(timer);
    const finish = chunkEvent(model, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    const usage = chunkEvent(model, { choices: [], usage: MOCK_USAGE });
    response.end(`${finish}${usage}data: [DONE]\n\n`);
  }, STREAM_CHUNK_INTERVAL_MS);
  response.once('close', () => clearInterval(timer));
}

function answer(response: ServerResponse, text: string): void {
  const request = JSON.parse(text) as { model?: string; stream?: boolean };
  const model = request.model ?? 'mock-0ms';
  const delayMs = Number(/-(\d+)ms$/.exec(model)?.[1] ?? 0);
  const reply = () => {
    if (request.stream === true) {
      stream(response, model);
      return;
    }
    const body = completion(model);
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  };
  if (delayMs === 0) {
    reply();
    return;
  }
  const timer = setTimeout(reply, delayMs);
  response.once('close', () => clearTimeout(timer));
}

function onRequest(request: IncomingMessage, response: ServerResponse): void {
  if (request.url?.includes('/images/')) {
    answerImages(request, response);
    return;
  }
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (part: string) => {
    text += part;
    if (text.length > MAX_BODY_BYTES) request.destroy();
  });
  request.on('end', () => {
    try {
      answer(response, text);
    } catch (error) {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: String(error) } }));
    }
  });
}

const server = createServer({ keepAliveTimeout: 120_000 }, onRequest);
server.listen(0, '127.0.0.1', 4096, () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});
process.once('disconnect', () => process.exit(0));
