/**
 * The public record of a certificate, and its hash: SHA-256 of the record's canonical JSON (RFC 8785), which anybody can compute
 * again from what verification shows. What may change later (status, holder's claim) and what is private is not in it.
 */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

export const CERT_SOURCES = ['award', 'create', 'permit', 'lecture', 'contest'] as const;

export interface CertificateRecord {
  readonly cert_id: string;
  /** What is certified. */
  readonly entry_id: string;
  readonly source: (typeof CERT_SOURCES)[number];
  readonly title: string | null;
  readonly holder_name: string | null;
  readonly event: string | null;
  /** `yyyy-mm-dd` */
  readonly issued_on: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** The picture, by the id it has for its callers. */
  readonly image_id: string | null;
  /** The issuing account. */
  readonly issuer: string;
}

/** Hexadecimal. */
export function recordSha256(record: CertificateRecord): string {
  const text = canonicalize(record);
  if (text === undefined) throw new Error('a certificate record is JSON');
  return createHash('sha256').update(text).digest('hex');
}
