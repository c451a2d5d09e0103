/** What the images section asks of the service, as callers do; the answers are checked and let go. */
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Service } from './service.ts';

const agent = new Agent({ keepAlive: true });
const TIMEOUT_MS = 180_000;

export interface Answer {
  readonly status: number;
  readonly ms: number;
  /** As many as asked for; nothing else of the body is kept. */
  readonly text: string;
  readonly bytes: number;
  readonly generationId: string;
}

interface Sent {
  readonly path: string;
  readonly key: string;
  readonly contentType?: string;
  readonly body?: readonly Buffer[];
}

function open(service: Service, { path, key, contentType, body }: Sent): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const length = body?.reduce((sum, part) => sum + part.length, 0) ?? 0;
  const outgoing = httpRequest(`${service.origin}${path}`, {
    agent,
    method: body === undefined ? 'GET' : 'POST',
    timeout: TIMEOUT_MS,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { 'content-length': length }),
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
    },
  });
  outgoing.once('response', resolve).once('error', reject);
  outgoing.once('timeout', () => outgoing.destroy(new Error(`${path} took over ${TIMEOUT_MS} ms`)));
  for (const part of body ?? []) outgoing.write(part);
  outgoing.end();
  return promise;
}

const KEPT_CHARACTERS = 400;

/** Throws when the answer is not 200. */
export async function send(service: Service, sent: Sent): Promise<Answer> {
  const startedAt = performance.now();
  const response = await open(service, sent);
  let text = '';
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (text.length < KEPT_CHARACTERS) text += part.toString('latin1', 0, KEPT_CHARACTERS - text.length);
  }
  const status = response.statusCode ?? 0;
  if (status !== 200) throw new Error(`${sent.path}: status ${status}: ${text}`);
  const generationId = String(response.headers['x-svc-image-id'] ?? '');
  return { status, ms: performance.now() - startedAt, text, bytes, generationId };
}

/** The answer, of which not a byte has been read. */
export async function openDownload(service: Service, path: string, key: string): Promise<IncomingMessage> {
  const response = await open(service, { path, key });
  response.pause();
  if (response.statusCode !== 200) throw new Error(`${path}: status ${response.statusCode}`);
  return response;
}

export function jsonBody(fields: Readonly<Record<string, unknown>>): Pick<Sent, 'contentType' | 'body'> {
  return { contentType: 'application/json', body: [Buffer.from(JSON.stringify(fields))] };
}

/** An edit's fields and picture as a form, or as JSON with the picture in base64. */
export function editBody(
  kind: 'multipart' | 'JSON',
  fields: Readonly<Record<string, string>>,
  picture: Buffer,
  base64: Buffer,
): Pick<Sent, 'contentType' | 'body'> {
  if (kind === 'JSON') {
    const head = Buffer.from(`${JSON.stringify(fields).slice(0, -1)},"image":"`);
    return { contentType: 'application/json', body: [head, base64, Buffer.from('"}')] };
  }
  const boundary = 'benchmark-of-the-service';
  const parts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const file = `--${boundary}\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n`;
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: [Buffer.from(parts.join('') + file), picture, Buffer.from(`\r\n--${boundary}--\r\n`)],
  };
}

export function closeConnections(): void {
  agent.destroy();
}
