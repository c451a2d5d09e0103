/**
 * Fetches a file that a provider's answer points to. The address is the provider's word, so it may lead anywhere: only http(s),
 * no redirect, no credential of ours, and no private address unless the provider itself has one. Addresses are checked when the
 * connection is made, so that a name cannot change what it means in between.
 */
import { type LookupAddress, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { makeHttpClient } from './http.ts';
import { type AnswerRoom, ProviderError } from './provider.ts';
import { TransportError } from './transport-error.ts';

const FETCH_LIMITS = { headersTimeoutMs: 30_000, idleTimeoutMs: 30_000, closeGraceMs: 0, maxConnections: 1 };
/** For all of it, however steadily it drips. */
const FETCH_TIMEOUT_MS = 120_000;
const REFUSED_CODE = 'PRIVATE_ADDRESS';

/** Addresses of this machine and its networks (IANA special-purpose registries). */
const PRIVATE = blockList(
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['::1', 128],
  ['fc00::', 7],
);
/** Addresses that no file is ever at; the metadata services of clouds among them. */
const NEVER = blockList(
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['::', 128],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['fe80::', 10],
  ['ff00::', 8],
);

export interface FetchOptions {
  /** The provider's, which says whether private addresses are its own network. */
  readonly baseUrl: URL;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** For the file. */
  readonly room?: AnswerRoom | undefined;
}

export async function fetchBytes(address: string, options: FetchOptions): Promise<Buffer> {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new ProviderError('invalid_response', 'The answer points to no address that can be fetched.');
  const isPrivateAllowed = await isPrivateHost(options.baseUrl.hostname);
  options.signal.throwIfAborted();
  // A literal address is connected to without a look-up.
  const literal = hostOf(url.hostname);
  if (isIP(literal) !== 0 && !isAllowed(literal, isPrivateAllowed)) throw refused();
  const timeout = AbortSignal.timeout(FETCH_TIMEOUT_MS);
  const client = makeHttpClient(new URL(url.origin), FETCH_LIMITS, { lookup: guarded(isPrivateAllowed) });
  try {
    const answer = await client.get({
      path: url.pathname + url.search,
      headers: ['accept', '*/*'],
      signal: AbortSignal.any([options.signal, timeout]),
      maxResponseBytes: options.maxBytes,
      room: options.room,
    });
    if (answer.status === 200) return answer.bytes;
    throw new ProviderError(
      answer.status >= 500 || answer.status === 429 ? 'unavailable' : 'invalid_response',
      `The address in the answer answered ${answer.status}.`,
      { status: answer.status },
    );
  } catch (error) {
    options.signal.throwIfAborted();
    if (timeout.aborted) {
      const isTimeout = true;
      throw new ProviderError('unavailable', 'The address in the answer is too slow.', { isTimeout });
    }
    if (error instanceof TransportError && error.code === REFUSED_CODE) throw refused();
    throw error;
  } finally {
    await client.close();
  }
}

function refused(): ProviderError {
  return new ProviderError('invalid_response', 'The answer points to a private address.');
}

/** The system's look-up, which fails when one of a name's addresses may not be connected to. */
function guarded(isPrivateAllowed: boolean): LookupFunction {
  return (host, options, callback) => {
    lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      if (!addresses.every(({ address }) => isAllowed(address, isPrivateAllowed)))
        return callback(Object.assign(new Error('A private address.'), { code: REFUSED_CODE }), []);
      const [first] = addresses;
      if (options.all === true || first === undefined) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}

async function isPrivateHost(hostname: string): Promise<boolean> {
  const host = hostOf(hostname);
  const addresses = await new Promise<readonly Pick<LookupAddress, 'address'>[]>((resolve) => {
    if (isIP(host) !== 0) resolve([{ address: host }]);
    else lookup(host, { all: true }, (error, found) => resolve(error === null ? found : []));
  });
  return addresses.some(({ address }) => isIn(PRIVATE, address));
}

function isAllowed(address: string, isPrivateAllowed: boolean): boolean {
  return !isIn(NEVER, address) && (isPrivateAllowed || !isIn(PRIVATE, address));
}

/** IPv4 addresses in the clothes of IPv6 (`::ffff:a.b.c.d`) are found by the rules for IPv4. */
function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

function hostOf(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function blockList(...subnets: [network: string, prefix: number][]): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of subnets)
    list.addSubnet(network, prefix, network.includes(':') ? 'ipv6' : 'ipv4');
  return list;
}
