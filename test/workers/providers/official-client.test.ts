/** The official client as the reader of what the adapters give, to hold their wire format to its types and its helpers. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import OpenAI from 'openai';
import { makeProvider } from '../../../workers/providers/index.ts';
import type { Provider } from '../../../workers/providers/provider.ts';
import { type MockUpstream, startMockUpstream } from '../../helpers/mock-upstream.ts';

/** Serves a provider's chat as the convention does, with nothing in between. */
async function serve(provider: Provider): Promise<{ server: Server; client: OpenAI }> {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>;
    const call = {
      requestId: 'r1',
      upstreamModel: 'sandbox',
      outputCapTokens: 500,
      signal: new AbortController().signal,
      body,
    };
    if (body.stream !== true) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify((await provider.chat?.complete(call))?.completion));
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    for await (const { chunk } of provider.chat?.stream(call) ?? [])
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end('data: [DONE]\n\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return { server, client: new OpenAI({ baseURL, apiKey: 'any', maxRetries: 0 }) };
}

describe('the official client', () => {
  let upstream: MockUpstream;
  const providers: Provider[] = [];
  const servers: Server[] = [];
  const clients: Record<string, OpenAI> = {};

  before(async () => {
    upstream = await startMockUpstream();
    for (const kind of ['openai', 'sandbox']) {
      const provider = makeProvider({ name: kind, kind, baseUrl: upstream.baseUrl, credential: 'any' });
      const { server, client } = await serve(provider);
      providers.push(provider);
      servers.push(server);
      clients[kind] = client;
    }
  });
  after(async () => {
    for (const server of servers) server.close().closeAllConnections();
    await Promise.all(providers.map((provider) => provider.close()));
    await upstream.close();
  });

  const messages = [{ role: 'user' as const, content: 'Hello' }];
  const sandbox = () => clients.sandbox ?? expect.fail();

  for (const kind of ['openai', 'sandbox']) {
    it(`reads the ${kind} provider's answers, whole and streamed, and finds them alike`, async () => {
      const client = clients[kind] ?? expect.fail();
      const whole = await client.chat.completions.create({ model: 'm', messages });
      const stream = client.chat.completions.stream({
        model: 'm',
        messages,
        stream_options: { include_usage: true },
      });
      const deltas: string[] = [];
      stream.on('content', (delta) => deltas.push(delta));
      const streamed = await stream.finalChatCompletion();
      expect(streamed.choices[0]?.message.content).to.equal(whole.choices[0]?.message.content);
      expect(streamed.choices[0]?.finish_reason).to.equal('stop');
      expect(streamed.usage).to.deep.equal(whole.usage);
      expect(deltas.filter(Boolean)).to.have.length.greaterThan(2);
    });
  }

  it('puts streamed tool calls together, and runs them to the end', async () => {
    const ran: unknown[] = [];
    const runner = sandbox().chat.completions.runTools({
      model: 'm',
      stream: true,
      messages: [{ role: 'user', content: 'Please use get_weather and get_time.' }],
      tools: ['get_weather', 'get_time'].map((name) => ({
        type: 'function' as const,
        function: {
          name,
          description: name,
          parameters: {
            type: 'object',
            properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 2 } },
            required: ['city', 'days'],
          },
          parse: (text: string) => JSON.parse(text) as object,
          function: (input: object) => {
            ran.push([name, input]);
            return 'sunny';
          },
        },
      })),
    });
    expect(await runner.finalContent()).to.equal(
      '[sandbox] You said: Please use get_weather and get_time. The tool answered: sunny',
    );
    expect(ran).to.deep.equal(
      ['get_weather', 'get_time'].map((name) => [name, { city: '[sandbox] text', days: 2 }]),
    );
  });

  it('parses structured output', async () => {
    const schema = {
      type: 'object',
      properties: { answer: { type: 'string' } },
      required: ['answer'],
      additionalProperties: false,
    };
    const stream = sandbox().chat.completions.stream({
      model: 'm',
      messages,
      response_format: { type: 'json_schema', json_schema: { name: 'x', strict: true, schema } },
    });
    expect(JSON.parse((await stream.finalContent()) ?? '')).to.deep.equal({ answer: '[sandbox] text' });
  });

  it('gathers streamed log-probabilities', async () => {
    const stream = sandbox().chat.completions.stream({
      model: 'm',
      messages,
      logprobs: true,
      top_logprobs: 2,
    });
    const { choices } = await stream.finalChatCompletion();
    expect(choices[0]?.logprobs?.content?.map((entry) => entry.token).join('')).to.equal(
      choices[0]?.message.content,
    );
  });
});
