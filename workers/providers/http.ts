/**
 * HTTP to providers on the hot path: POST of JSON on a keep-alive pool, answered whole or as a stream of bytes.
 * Over undici's `dispatch`, which measured 10× got and 1.3× undici's `request` (docs/decisions/0010-http-client.md).
 * Every wait and every size has a limit. Redirects are never followed: they are answers like any other status.
 * Transport failures are `ProviderError`s; an abort rethrows the signal's reason. What a status means is the adapter's to say.
 */
import { Pool } from 'undici';
import {
  type Exchange,
  HTTP_LIMITS,
  type HttpAnswer,
  type HttpLimits,
  StreamExchange,
  WholeExchange,
} from './http-exchange.ts';

export interface HttpRequest {
  /** Below the base address, starting with a slash. */
  readonly path: string;
  /** Name, value, name, value: undici's cheapest form. */
  readonly headers: readonly string[];
  readonly body: string;
  readonly signal: AbortSignal;
}

export interface HttpClient {
  /** Resolves with any status and its body. */
  postJson(request: HttpRequest): Promise<HttpAnswer>;
  /** Begins at once; await `started` before anything else. */
  postStream(request: HttpRequest): StreamExchange;
  /** Takes no more calls; resolves when those under way are done or their grace is over. */
  close(): Promise<void>;
}

export function makeHttpClient(baseUrl: URL, overrides: Partial<HttpLimits> = {}): HttpClient {
  const limits = { ...HTTP_LIMITS, ...overrides };
  const pathPrefix = baseUrl.pathname.replace(/\/+$/, '');
  const pool = new Pool(baseUrl.origin, {
    connections: limits.maxConnections,
    connectTimeout: limits.connectTimeoutMs,
    headersTimeout: limits.headersTimeoutMs,
    bodyTimeout: limits.idleTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    // One call, one connection: an abort closes the socket, and a slow reader holds back only itself.
    allowH2: false,
  });

  function dispatch<Kind extends Exchange>(request: HttpRequest, exchange: Kind): Kind {
    if (exchange.isOver) return exchange;
    const path = pathPrefix + request.path + baseUrl.search;
    pool.dispatch(
      { method: 'POST', path, headers: request.headers as string[], body: request.body },
      exchange,
    );
    return exchange;
  }

  /** Calls under way finish, within the grace: a catalogue change must not fail them. */
  async function close(): Promise<void> {
    const timer = setTimeout(() => void pool.destroy(), limits.closeGraceMs);
    await pool.close().finally(() => clearTimeout(timer));
  }
  let closing: Promise<void> | undefined;

  return {
    postJson: (request) => dispatch(request, new WholeExchange(request.signal, limits)).answer,
    postStream: (request) => dispatch(request, new StreamExchange(request.signal, limits)),
    close: () => (closing ??= close()),
  };
}
