/**
 * Makes a certificate chain for signing pictures where nobody has bought one: a root and, issued by it, the leaf that signs.
 * C2PA readers refuse a leaf that signed itself. The root's key is forgotten at once: nothing more can be issued in its name.
 */
import { KeyObject, randomBytes, webcrypto } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** Without a timestamp authority a picture's signature counts only as long as its certificate. */
const LEAF_YEARS = 10;
const ROOT_YEARS = 20;
const KEY = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' } as const;

export interface ChainPem {
  /** Leaf first, then the root. */
  readonly certificate: string;
  /** PKCS #8, of the leaf. */
  readonly privateKey: string;
}

export async function makeCertificateChain(now: Date = new Date()): Promise<ChainPem> {
  const { subtle } = webcrypto;
  const rootKeys = (await subtle.generateKey(KEY, false, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const leafKeys = (await subtle.generateKey(KEY, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const notBefore = new Date(now.getTime() - 60_000); // a reader's clock may be a little behind
  // names that differ from one installation to the next: readers look an issuer up by its name
  const name = randomBytes(4).toString('hex');
  const root = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `O=svc, CN=svc provenance root ${name}`,
    notBefore,
    notAfter: inYears(now, ROOT_YEARS),
    keys: rootKeys,
    signingAlgorithm: SIGNATURE,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(rootKeys.publicKey),
    ],
  });
  const leaf = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `O=svc, CN=svc provenance ${name}`,
    issuer: root.subject,
    notBefore,
    notAfter: inYears(now, LEAF_YEARS),
    publicKey: leafKeys.publicKey,
    signingKey: rootKeys.privateKey,
    signingAlgorithm: SIGNATURE,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.emailProtection]),
      await SubjectKeyIdentifierExtension.create(leafKeys.publicKey),
      await AuthorityKeyIdentifierExtension.create(rootKeys.publicKey),
    ],
  });
  return {
    certificate: `${leaf.toString('pem')}\n${root.toString('pem')}\n`,
    privateKey: String(KeyObject.from(leafKeys.privateKey).export({ type: 'pkcs8', format: 'pem' })),
  };
}

/** Positive, 127 random bits. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

function inYears(from: Date, years: number): Date {
  const then = new Date(from);
  then.setUTCFullYear(then.getUTCFullYear() + years);
  return then;
}
