/**
 * Secrets: how keys and operator tokens are made, and their hashes, which alone are stored. A secret carries 256 random bits,
 * so a plain SHA-256 is as good as any slow hash and costs nothing per request.
 */
import { hash, randomBytes } from 'node:crypto';

export const KEY_PREFIXES = ['svc_live_', 'svc_test_', 'svc_beta_'] as const;
export type KeyPrefix = (typeof KEY_PREFIXES)[number];
export const OPERATOR_TOKEN_PREFIX = 'svc_op_';

export const SCOPES = ['llm', 'tts', 'images', 'x', 'cert'] as const;
export type Scope = (typeof SCOPES)[number];

const SECRET_SHAPE = /^svc_(?:live|test|beta)_[A-Za-z0-9_-]{16,128}$/;

export interface NewSecret {
  /** Shown once, never stored. */
  readonly secret: string;
  readonly hash: Buffer;
  /** The last four characters, for people to tell keys apart. */
  readonly hint: string;
}

export function makeSecret(prefix: string): NewSecret {
  return describeSecret(prefix + randomBytes(32).toString('base64url'));
}

export function describeSecret(secret: string): NewSecret {
  return { secret, hash: hashSecret(secret), hint: secret.slice(-4) };
}

export function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** Whether a string can be an API key at all; what is not is refused without asking the database. */
export function isKeyShaped(secret: string): boolean {
  return SECRET_SHAPE.test(secret);
}

export function prefixOf(secret: string): KeyPrefix | undefined {
  return KEY_PREFIXES.find((prefix) => secret.startsWith(prefix));
}
