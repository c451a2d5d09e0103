/** A streamed chat as its caller reads it, piece by piece; or does not read it. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { chatBody, type TestCaller, type TestService } from '../helpers/service.ts';

export interface OpenStream {
  readonly id: string;
  readonly status: number;
  /** Everything read so far. */
  readonly text: string;
  /** The contents of the deltas read so far. */
  readonly content: string;
  /** Reads on until `text` holds this. */
  readUntil(part: string): Promise<void>;
  /** Reads to the end; throws when the connection breaks. */
  readAll(): Promise<void>;
  /** Goes away, as a client does that is closed. */
  leave(): void;
  readonly response: IncomingMessage;
}

/** Resolves with the response's headers; nothing of its body is read before it is asked for. */
export async function openStream(
  service: Pick<TestService, 'urls'>,
  caller: Pick<TestCaller, 'secret'>,
  body: object = {},
  web = 0,
): Promise<OpenStream> {
  const { response } = await send(service, caller, body, web);
  response.setEncoding('utf8');
  let text = '';
  const iterator = response.iterator({ destroyOnReturn: false });
  return {
    id: String(response.headers['x-svc-request-id']),
    status: response.statusCode ?? 0,
    response,
    get text() {
      return text;
    },
    get content() {
      return contentOf(text);
    },
    async readUntil(part) {
      while (!text.includes(part)) {
        const { value, done } = (await iterator.next()) as { value: string; done?: boolean };
        if (done) throw new Error(`the stream ended without ${part}: ${text.slice(-500)}`);
        text += value;
      }
    },
    async readAll() {
      for (let part = await iterator.next(); !part.done; part = await iterator.next())
        text += part.value as string;
    },
    leave() {
      response.destroy();
    },
  };
}

function send(
  service: Pick<TestService, 'urls'>,
  { secret }: Pick<TestCaller, 'secret'>,
  body: object,
  web: number,
): Promise<{ response: IncomingMessage; sent: ClientRequest }> {
  return new Promise((resolve, reject) => {
    const sent = request(`${service.urls[web]}/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    });
    sent.once('error', reject);
    sent.once('response', (response) => {
      response.on('error', () => {}); // told to whoever reads
      resolve({ response, sent });
    });
    sent.end(JSON.stringify(chatBody({ stream: true, ...body })));
  });
}

export function contentOf(text: string): string {
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)) as { choices?: { delta?: { content?: string } }[] })
    .map((event) => event.choices?.[0]?.delta?.content ?? '')
    .join('');
}
