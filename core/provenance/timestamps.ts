/**
 * Timestamps of signatures as C2PA 2.1 writes them (`sigTst2`: bare tokens) made into what the library reads (whole responses of a
 * timestamp authority). Without this it refuses every manifest that has one.
 */
import { CBORBox, SuperBox } from '@trustnxt/c2pa-ts/jumbf';

const OBJECT_IDENTIFIER = 0x06;
const SEQUENCE = 0x30;
/** PKIStatusInfo: granted (RFC 3161, section 2.4.2). */
const GRANTED = Buffer.from([SEQUENCE, 3, 2, 1, 0]);
/** A token is some 6 KB. */
const MAX_TOKEN_BYTES = 0xffff - 100;

/** In the parsed values alone: the boxes' bytes stay as they came. */
export function completeTimestamps(store: SuperBox): void {
  for (const manifest of store.contentBoxes) {
    if (!(manifest instanceof SuperBox)) continue;
    const content = manifest.getByPath('c2pa.signature')?.contentBoxes[0];
    const unprotected: unknown =
      content instanceof CBORBox && Array.isArray(content.content) ? content.content[1] : null;
    const tokens = (unprotected as { sigTst2?: { tstTokens?: unknown } } | null)?.sigTst2?.tstTokens;
    if (!Array.isArray(tokens)) continue;
    for (const token of tokens as { val?: unknown }[]) {
      if (token?.val instanceof Uint8Array) token.val = asResponse(token.val);
    }
  }
}

/** TimeStampResp: a status, then the token. What is one already stays as it is. */
export function asResponse(token: Uint8Array): Uint8Array {
  const first = token[1] ?? 0;
  const contentAt = first < 0x80 ? 2 : 2 + (first & 0x7f);
  const isBare = token[0] === SEQUENCE && token[contentAt] === OBJECT_IDENTIFIER;
  if (!isBare || token.length > MAX_TOKEN_BYTES) return token;
  const length = GRANTED.length + token.length;
  return Buffer.concat([Buffer.from([SEQUENCE, 0x82, length >> 8, length & 0xff]), GRANTED, token]);
}
