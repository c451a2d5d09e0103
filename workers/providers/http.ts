/**
 * HTTP to providers on the hot path: POST of JSON or a form on a keep-alive pool, answered whole or as a stream of bytes.
 * Over undici's `dispatch`, which measured 10× got and 1.3× undici's `request` (docs/decisions/0010-http-client.md).
 * Every wait and every size has a limit. Redirects are never followed: they are answers like any other status.
 * Transport failures are `ProviderError`s; an abort rethrows the signal's reason. What a status means is the adapter's to say.
 */
import type { LookupFunction } from 'node:net';
import { Pool } from 'undici';
import type { FormBody } from './form-body.ts';
import {
  type Exchange,
  type ExchangeOptions,
  HTTP_LIMITS,
  type HttpAnswer,
  type HttpLimits,
  StreamExchange,
  WholeExchange,
} from './http-exchange.ts';

export interface HttpRequest extends ExchangeOptions {
  /** Below the base address, starting with a slash. */
  readonly path: string;
  /** Name, value, name, value: undici's cheapest form. */
  readonly headers: readonly string[];
  /** A form brings headers of its own. */
  readonly body: string | FormBody;
  readonly signal: AbortSignal;
}

export interface HttpOptions {
  /** Finds the address of a host, or refuses to. */
  readonly lookup?: LookupFunction;
}

export interface HttpClient {
  /** Resolves with any status and its body. */
  post(request: HttpRequest): Promise<HttpAnswer>;
  /** Begins at once; await `started` before anything else. */
  postStream(request: HttpRequest): StreamExchange;
  /** Resolves with any status and its body. */
  get(request: Omit<HttpRequest, 'body'>): Promise<HttpAnswer>;
  /** Takes no more calls; resolves when those under way are done or their grace, here or of the limits, is over. */
  close(graceMs?: number): Promise<void>;
}

export function makeHttpClient(
  baseUrl: URL,
  overrides: Partial<HttpLimits> = {},
  options: HttpOptions = {},
): HttpClient {
  const limits = { ...HTTP_LIMITS, ...overrides };
  const pathPrefix = baseUrl.pathname.replace(/\/+$/, '');
  const pool = new Pool(baseUrl.origin, {
    connections: limits.maxConnections,
    connect: { ...options },
    connectTimeout: limits.connectTimeoutMs,
    headersTimeout: limits.headersTimeoutMs,
    bodyTimeout: limits.idleTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    // One call, one connection: an abort closes the socket, and a slow reader holds back only itself.
    allowH2: false,
  });

  function dispatch<Kind extends Exchange>(
    method: 'GET' | 'POST',
    request: Omit<HttpRequest, 'body'>,
    body: HttpRequest['body'] | null,
    exchange: Kind,
  ): Kind {
    if (exchange.isOver) return exchange;
    const search = request.path.includes('?') ? baseUrl.search.replace('?', '&') : baseUrl.search;
    const path = pathPrefix + request.path + search;
    const isForm = body !== null && typeof body !== 'string';
    pool.dispatch(
      {
        method,
        path,
        headers: isForm ? [...request.headers, ...body.headers] : (request.headers as string[]),
        body: isForm ? body.open() : body,
      },
      exchange,
    );
    return exchange;
  }

  /** Calls under way finish, within the grace: a catalogue change must not fail them. */
  async function close(graceMs = limits.closeGraceMs): Promise<void> {
    const timer = setTimeout(() => void pool.destroy(), graceMs);
    await pool.close().finally(() => clearTimeout(timer));
  }
  let closing: Promise<void> | undefined;

  return {
    post: (request) =>
      dispatch('POST', request, request.body, new WholeExchange(request.signal, limits, request)).answer,
    postStream: (request) =>
      dispatch('POST', request, request.body, new StreamExchange(request.signal, limits, request)),
    get: (request) =>
      dispatch('GET', request, null, new WholeExchange(request.signal, limits, request)).answer,
    close: (graceMs) => (closing ??= close(graceMs)),
  };
}
