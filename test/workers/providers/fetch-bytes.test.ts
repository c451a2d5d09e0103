/** Fetching what an answer points to: which addresses are refused, and how much is taken. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { afterEach, describe, it } from 'mocha';
import { fetchBytes } from '../../../workers/providers/fetch-bytes.ts';
import { failureOf } from './conformance.ts';

const PUBLIC = new URL('https://203.0.113.7/v1');
const PRIVATE = new URL('http://127.0.0.1:1/v1');
const { signal } = new AbortController();

describe('what an answer points to', () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  async function serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close().closeAllConnections());
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  for (const host of [
    '127.0.0.1',
    'localhost',
    '10.1.2.3',
    '172.20.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '[::1]',
    '[::]',
    '[fd00::1]',
    '[fe80::1]',
    '[::ffff:127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '2130706433',
    '0x7f.1',
    '127.1',
  ]) {
    it(`is not fetched from ${host}`, async () => {
      const failure = await failureOf(
        fetchBytes(`http://${host}:9/x`, { baseUrl: PUBLIC, maxBytes: 9, signal }),
      );
      expect(failure).to.include({
        kind: 'invalid_response',
        message: 'The answer points to a private address.',
      });
    });
  }

  it('is fetched from a private network when the provider is there too, but never from a metadata service', async () => {
    const host = await serve((_request, response) => response.end('picture'));
    const options = { baseUrl: PRIVATE, maxBytes: 100, signal };
    expect((await fetchBytes(`http://${host}/x?y=1`, options)).toString()).to.equal('picture');
    expect(
      (await fetchBytes(`http://${host.replace('127.0.0.1', 'localhost')}/x`, options)).toString(),
    ).to.equal('picture');
    expect(await failureOf(fetchBytes('http://169.254.169.254/', options))).to.include({
      kind: 'invalid_response',
    });
  });

  it('is asked for by path and query, with no credential and no cookie', async () => {
    const asked: unknown[] = [];
    const host = await serve((request, response) => {
      asked.push([request.method, request.url, Object.keys(request.headers).toSorted()]);
      response.end('x');
    });
    await fetchBytes(`http://${host}/a/b?sig=%2F1#fragment`, { baseUrl: PRIVATE, maxBytes: 9, signal });
    expect(asked).to.deep.equal([['GET', '/a/b?sig=%2F1', ['accept', 'connection', 'host']]]);
  });

  it('is not followed elsewhere', async () => {
    const host = await serve((_request, response) =>
      response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    );
    expect(
      await failureOf(fetchBytes(`http://${host}/`, { baseUrl: PRIVATE, maxBytes: 9, signal })),
    ).to.include({ kind: 'invalid_response', status: 302 });
  });

  it('is taken up to a size', async () => {
    const host = await serve((_request, response) => response.end('x'.repeat(1_000_000)));
    const options = { baseUrl: PRIVATE, signal };
    expect(await fetchBytes(`http://${host}/`, { ...options, maxBytes: 1_000_000 })).to.have.length(
      1_000_000,
    );
    expect(await failureOf(fetchBytes(`http://${host}/`, { ...options, maxBytes: 999_999 }))).to.include({
      kind: 'invalid_response',
    });
  });

  it('waits for room for a large file', async () => {
    const host = await serve((_request, response) => response.end('x'.repeat(1_000_000)));
    const seen: (number | undefined)[] = [];
    const room = { enter: async (bytes?: number) => void seen.push(bytes), leave: () => {} };
    await fetchBytes(`http://${host}/`, { baseUrl: PRIVATE, signal, maxBytes: 1_000_000, room });
    expect(seen).to.deep.equal([1_000_000]);
  });
});
