/** A speech as its caller hears it, piece by piece; or does not. */
import { type IncomingMessage, request } from 'node:http';
import type { TestCaller, TestService } from '../helpers/service.ts';
import { MOCKED_VOICE } from '../helpers/speech-models.ts';

export interface OpenSpeech {
  readonly id: string;
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** Everything read so far. */
  readonly bytes: Buffer;
  /** Reads on until so many bytes are there. */
  readUntil(bytes: number): Promise<void>;
  /** Reads to the end; throws when the connection breaks before that. */
  readAll(): Promise<Buffer>;
  /** Goes away, as a client does that is closed. */
  leave(): void;
}

/** Resolves with the response's headers; nothing of its body is read before it is asked for. */
export async function openSpeech(
  service: Pick<TestService, 'urls'>,
  { secret }: Pick<TestCaller, 'secret'>,
  body: object = {},
  web = 0,
): Promise<OpenSpeech> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(`${service.urls[web]}/v1/audio/speech`, {
      method: 'POST',
      agent: false,
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    });
    sent.once('error', reject);
    sent.once('response', resolve);
    sent.end(JSON.stringify({ input: 'Hello', voice: MOCKED_VOICE, ...body }));
  });
  response.on('error', () => {}); // told to whoever reads
  const iterator = response.iterator({ destroyOnReturn: false });
  let parts: Buffer[] = [];
  let length = 0;
  const next = async (): Promise<boolean> => {
    const { value, done } = (await iterator.next()) as { value: Buffer; done?: boolean };
    if (done === true) return false;
    parts.push(value);
    length += value.length;
    return true;
  };
  const all = (): Buffer => {
    parts = [Buffer.concat(parts)];
    return parts[0] as Buffer;
  };
  return {
    id: String(response.headers['x-svc-request-id']),
    status: response.statusCode ?? 0,
    headers: response.headers,
    get bytes() {
      return all();
    },
    async readUntil(bytes) {
      while (length < bytes) {
        if (!(await next())) throw new Error(`the speech ended after ${length} bytes`);
      }
    },
    async readAll() {
      while (await next());
      return all();
    },
    leave() {
      response.destroy();
    },
  };
}
