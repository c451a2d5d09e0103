/** What an inspection of a picture answers: the body of `POST /v1/images/inspect`. */
import type { PictureFormat } from './picture-parts.ts';

export interface Problem {
  /** C2PA's own status code (C2PA 2.1, section 15.2.2), or one of ours where it has none. */
  readonly code: string;
  readonly detail: string;
}

export interface InspectedAssertion {
  readonly label: string;
  /** Its content where that is CBOR or JSON; null: something else (a thumbnail). */
  readonly data: unknown;
}

/**
 * Null stands for "not known": nothing was there to check, or it could not be checked. Nothing here says that a signer deserves
 * trust: `signature.valid` is about the signature, `signed_by_this_service` about the certificate we sign with ourselves.
 */
export interface Inspection {
  readonly has_manifest: boolean;
  readonly format: PictureFormat;
  claim_generator: string | null;
  title: string | null;
  created_at: string | null;
  assertions: InspectedAssertion[];
  signature: {
    valid: boolean | null;
    algorithm: string | null;
    issuer: string | null;
    subject: string | null;
    signed_by_this_service: boolean | null;
  };
  hashes: { valid: boolean | null };
  /** The manifest is whole, signed, and about these very bytes. */
  valid: boolean | null;
  readonly problems: Problem[];
}

export function newInspection(format: PictureFormat, hasManifest: boolean): Inspection {
  return {
    has_manifest: hasManifest,
    format,
    claim_generator: null,
    title: null,
    created_at: null,
    assertions: [],
    signature: {
      valid: null,
      algorithm: null,
      issuer: null,
      subject: null,
      signed_by_this_service: hasManifest ? null : false,
    },
    hashes: { valid: null },
    valid: null,
    problems: [],
  };
}
