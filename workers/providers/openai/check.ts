/** `GET {base}/models` over got, which is loaded when first needed: operators ask this, requests never do. */
import type { ProviderCheck } from '../check.ts';
import { ProviderError } from '../provider.ts';
import { isObject, statusError } from './errors.ts';
import { parseObject } from './response.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const CHECK_TIMEOUT_MS = 15_000;
const MAX_LIST_BYTES = 4 * 1024 * 1024;

export async function checkModels(
  baseUrl: URL,
  credential: string | undefined,
  signal?: AbortSignal,
): Promise<ProviderCheck> {
  signal?.throwIfAborted();
  const { default: got } = await import('got');
  const url = `${baseUrl.origin}${baseUrl.pathname.replace(/\/+$/, '')}/models${baseUrl.search}`;
  const tooLarge = new AbortController();
  const request = got(url, {
    headers: {
      accept: 'application/json',
      ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
    },
    timeout: { connect: CONNECT_TIMEOUT_MS, request: CHECK_TIMEOUT_MS },
    // The credential goes to the configured address and nowhere else.
    followRedirect: false,
    retry: { limit: 0 },
    throwHttpErrors: false,
    signal: signal === undefined ? tooLarge.signal : AbortSignal.any([signal, tooLarge.signal]),
  });
  request.on('downloadProgress', (progress: { transferred: number }) => {
    if (progress.transferred > MAX_LIST_BYTES) tooLarge.abort();
  });
  const answer = await request.catch((error: unknown) => {
    signal?.throwIfAborted();
    if (tooLarge.signal.aborted)
      throw new ProviderError('invalid_response', `The list of models is over ${MAX_LIST_BYTES} bytes.`);
    // got's error holds the request with its credential: only its code is kept.
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new ProviderError('unavailable', `The provider cannot be reached (${code}).`);
  });
  if (answer.statusCode !== 200)
    throw statusError(answer.statusCode, answer.headers, answer.body, credential);
  const { data } = parseObject(answer.body);
  if (!Array.isArray(data)) throw new ProviderError('invalid_response', 'The list of models is no list.');
  const models = (data as unknown[]).flatMap((model) =>
    isObject(model) && typeof model.id === 'string' ? [model.id] : [],
  );
  return { models };
}
