/** What every adapter over HTTP asks of its configuration. Throws a plain `Error`, in words for an operator. */
import type { ProviderConfig } from './provider.ts';

export function parseBaseUrl(config: ProviderConfig): URL {
  const baseUrl = config.baseUrl === undefined ? null : URL.parse(config.baseUrl);
  if (baseUrl === null || !/^https?:$/.test(baseUrl.protocol))
    throw new Error(`Provider "${config.name}" needs an http(s) base address.`);
  if (baseUrl.username !== '' || baseUrl.password !== '') {
    throw new Error(
      `The base address of provider "${config.name}" must not hold a credential; name an environment variable instead.`,
    );
  }
  return baseUrl;
}

export function checkCredential(config: ProviderConfig): void {
  if (config.credential === undefined || /^[\x21-\x7e]+$/.test(config.credential)) return;
  throw new Error(
    `The credential of provider "${config.name}" is empty or has characters that no header can carry.`,
  );
}
