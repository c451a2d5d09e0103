import { ProviderError } from './provider.ts';

const BROKEN_ANSWER_CODES: ReadonlySet<string> = new Set([
  'HTTPParserError',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_HEADERS_OVERFLOW',
]);

/** The connection failed, rather than the provider answered. */
export class TransportError extends ProviderError {
  /** Node's, undici's or llhttp's code. */
  readonly code: string;

  constructor(error: Error) {
    const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
    // undici's parser errors have llhttp's code or none.
    const breaksHttp = code.startsWith('HPE_') || BROKEN_ANSWER_CODES.has(code);
    // Parser errors carry pieces of the body, so they are not kept as a cause.
    if (breaksHttp) super('invalid_response', `The answer breaks HTTP (${code}).`);
    else {
      const isTimeout = code.endsWith('_TIMEOUT');
      super('unavailable', `The provider cannot be reached (${code}).`, { isTimeout, cause: error });
    }
    this.code = code;
  }
}
