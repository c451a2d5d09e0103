/**
 * An upstream of the OpenAI convention that speaks and transcribes: `POST /v1/audio/speech`, `POST /v1/audio/transcriptions`. What it
 * says next is programmed; its audio comes in parts, each behind a gate of the test's.
 *
 *   const upstream = await startAudioUpstream();
 *   upstream.next({ parts: [frames(20), frames(20)], gates: [undefined, gate.passed] });
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface SpokenAnswer {
  readonly parts?: readonly Buffer[];
  /** Awaited before the part of the same index. */
  readonly gates?: readonly (Promise<unknown> | undefined)[];
  /** After the last part: end well, break the connection, or leave it open. */
  readonly then?: 'end' | 'break' | 'hang';
  /** Instead of audio. */
  readonly status?: number;
  readonly error?: Readonly<Record<string, unknown>>;
  /** Of a transcription; an object is sent as JSON. */
  readonly transcript?: Readonly<Record<string, unknown>>;
}

export interface AudioCall {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly aborted: Promise<void>;
}

export interface AudioUpstream {
  readonly baseUrl: string;
  readonly calls: AudioCall[];
  next(...answers: readonly SpokenAnswer[]): void;
  reset(): void;
  close(): Promise<void>;
}

const FRAME_BYTES = 417;
/** 1152 samples at 44.1 kHz. */
export const FRAME_MS = (1152 / 44_100) * 1000;

/** So many frames of MP3: 128 kbit/s, 44.1 kHz, silent; each as long as the others, none like another. */
export function frames(count: number, first = 0): Buffer {
  return Buffer.concat(
    Array.from({ length: count }, (_, index) => {
      const frame = Buffer.alloc(FRAME_BYTES);
      frame.set([0xff, 0xfb, 0x90, 0xc4]);
      // behind what a decoder reads of a silent frame
      frame.writeUInt32BE(first + index, FRAME_BYTES - 4);
      return frame;
    }),
  );
}

export async function startAudioUpstream(): Promise<AudioUpstream> {
  const sockets = new Set<Socket>();
  const calls: AudioCall[] = [];
  let answers: SpokenAnswer[] = [];

  async function speak(response: ServerResponse, answer: SpokenAnswer): Promise<void> {
    const { parts = [frames(40)], gates = [] } = answer;
    response.writeHead(200, { 'content-type': 'audio/mpeg' });
    for (const [index, part] of parts.entries()) {
      await gates[index];
      if (response.destroyed) return;
      if (!response.write(part)) await new Promise((resolve) => response.once('drain', resolve));
    }
    if (answer.then === 'break') response.destroy();
    else if (answer.then !== 'hang') response.end();
  }

  function sendJson(response: ServerResponse, status: number, body: unknown): void {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  }

  const server = createServer((request, response) => {
    const received: Buffer[] = [];
    request.on('data', (part: Buffer) => received.push(part));
    request.on('end', () => {
      const aborted = Promise.withResolvers<void>();
      response.on('close', () => {
        if (!response.writableFinished) aborted.resolve();
      });
      const path = request.url ?? '';
      calls.push({ path, headers: request.headers, body: Buffer.concat(received), aborted: aborted.promise });
      const answer = answers.shift() ?? {};
      if (answer.status !== undefined) sendJson(response, answer.status, { error: answer.error ?? {} });
      else if (path.endsWith('/audio/transcriptions'))
        sendJson(response, 200, answer.transcript ?? { text: 'Hello from the mock.' });
      else void speak(response, answer);
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    next: (...more) => void answers.push(...more),
    reset() {
      answers = [];
      calls.length = 0;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
