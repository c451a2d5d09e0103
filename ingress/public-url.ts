/** Addresses given to callers: below BASE_URL, or else below the address the request came to. */
import type { Config } from '../core/config.ts';
import type { Context } from './context.ts';

export type Addressing = Pick<Config, 'baseUrl' | 'proxyCount'>;

/**
 * Whether everybody who asks at one address is given the same ones. Behind proxies and without BASE_URL a caller may name the origin in
 * `X-Forwarded-Host`: what a cache kept of that answer, others would be given.
 */
export function haveAddressesOneOrigin({ baseUrl, proxyCount }: Addressing): boolean {
  return baseUrl !== undefined || proxyCount === 0;
}

export function publicUrl(ctx: Context, { baseUrl }: Pick<Config, 'baseUrl'>, path: string): string {
  return `${baseUrl ?? `${ctx.protocol}://${ctx.host}`}${path}`;
}
