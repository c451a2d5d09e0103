/**
 * Who signs pictures: a certificate, those between it and its root, and its private key. Given by C2PA_CERTIFICATE and
 * C2PA_PRIVATE_KEY (PEM texts), or made once and kept in DATA_DIR. Says what is wrong with one in a line; judges no trust.
 */
import { createPrivateKey, type KeyObject, randomUUID, X509Certificate } from 'node:crypto';
import { link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.ts';

export type IdentityConfig = Pick<Config, 'c2paCertificate' | 'c2paPrivateKey' | 'dataDir'>;

export type SigningAlgorithm = 'ES256' | 'ES384' | 'Ed25519';

export interface Identity {
  /** Leaf first. A root is left out: whoever trusts it has it (C2PA 2.1, section 14.5). */
  readonly certificates: readonly X509Certificate[];
  readonly privateKey: KeyObject;
  readonly algorithm: SigningAlgorithm;
}

const FOLDER = 'c2pa';
/** Key and certificates in one file: they change together or not at all. */
const FILE = 'chain.pem';

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
/** The uses of a certificate that C2PA readers accept for signing: emailProtection, documentSigning. */
const SIGNING_USES = ['1.3.6.1.5.5.7.3.4', '1.3.6.1.5.5.7.3.36'];

/** The identity that the environment gives; undefined: it gives none. Throws an Error of one line when it is of no use. */
export function givenIdentity(config: IdentityConfig): Identity | undefined {
  const { c2paCertificate: certificate, c2paPrivateKey: privateKey } = config;
  if (certificate === undefined && privateKey === undefined) return undefined;
  if (certificate === undefined)
    throw new Error('C2PA_CERTIFICATE is not set: C2PA_PRIVATE_KEY belongs to it');
  if (privateKey === undefined)
    throw new Error('C2PA_PRIVATE_KEY is not set: C2PA_CERTIFICATE needs its key');
  return readIdentity(certificate, privateKey);
}

/** The environment's, or else the one kept in DATA_DIR, which is made when it is not there. */
export async function loadIdentity(config: IdentityConfig): Promise<Identity> {
  const given = givenIdentity(config);
  if (given !== undefined) return given;
  const kept = (await readKept(config.dataDir)) ?? (await makeKept(config.dataDir));
  return readIdentity(kept, kept);
}

/**
 * For a worker that is a process of its own: whether it can sign is found out at its start. Throws an Error of one line when it
 * cannot; returns a warning where each process may be signing as somebody else.
 */
export async function requireIdentity(
  config: IdentityConfig & Pick<Config, 'isProduction'>,
): Promise<string | undefined> {
  try {
    await loadIdentity(config);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new Error(
      `C2PA_CERTIFICATE and C2PA_PRIVATE_KEY are not set, and DATA_DIR ${config.dataDir} cannot keep a chain (${code}): worker signs every picture`,
      { cause: error },
    );
  }
  if (!config.isProduction || config.c2paCertificate !== undefined) return undefined;
  return 'C2PA_CERTIFICATE is not set: pictures are signed with a chain in DATA_DIR/c2pa, which web and workers must share and which must outlive them';
}

/** The certificate this service signs with, as far as this process can know; it needs no key for that. */
export async function ownCertificate(config: IdentityConfig): Promise<X509Certificate | undefined> {
  const text = config.c2paCertificate ?? (await readKept(config.dataDir));
  return text === undefined ? undefined : certificatesIn(text)[0];
}

function readIdentity(certificateText: string, keyText: string): Identity {
  const certificates = certificatesIn(certificateText);
  const [leaf] = certificates;
  if (leaf === undefined)
    throw new Error('C2PA_CERTIFICATE holds no certificate (PEM, the signing one first)');
  const fault = faultOf(leaf, certificates);
  if (fault !== undefined) throw new Error(`C2PA_CERTIFICATE cannot sign pictures: ${fault}`);
  const privateKey = privateKeyIn(keyText);
  if (!leaf.checkPrivateKey(privateKey)) {
    throw new Error('C2PA_PRIVATE_KEY does not belong to the first certificate of C2PA_CERTIFICATE');
  }
  const algorithm = algorithmOf(privateKey);
  if (algorithm === undefined) {
    throw new Error('C2PA_PRIVATE_KEY must be of type EC (P-256 or P-384) or Ed25519');
  }
  return { certificates: certificates.filter((one) => !isSelfSigned(one)), privateKey, algorithm };
}

function certificatesIn(text: string): X509Certificate[] {
  const blocks = unescaped(text).match(CERTIFICATES) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch (error) {
    throw new Error('C2PA_CERTIFICATE holds something that is no certificate', { cause: error });
  }
}

function faultOf(leaf: X509Certificate, chain: readonly X509Certificate[]): string | undefined {
  if (leaf.ca) return 'it is an authority’s';
  if (isSelfSigned(leaf)) return 'it is self-signed';
  if (!leaf.keyUsage?.some((use) => SIGNING_USES.includes(use))) {
    return 'its extended key usage has neither emailProtection nor documentSigning';
  }
  const isBroken = chain.some((one, index) => {
    const issuer = chain[index + 1];
    return issuer !== undefined && !(one.checkIssued(issuer) && one.verify(issuer.publicKey));
  });
  return isBroken ? 'each certificate must be issued by the one behind it' : undefined;
}

function isSelfSigned(certificate: X509Certificate): boolean {
  return certificate.subject === certificate.issuer;
}

function privateKeyIn(text: string): KeyObject {
  try {
    return createPrivateKey(unescaped(text));
  } catch (error) {
    // the cause would quote nothing of the key, and says little: OpenSSL’s words
    throw new Error('C2PA_PRIVATE_KEY is no private key (PEM, not encrypted)', { cause: error });
  }
}

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): SigningAlgorithm | undefined {
  if (asymmetricKeyType === 'ed25519') return 'Ed25519';
  if (asymmetricKeyDetails?.namedCurve === 'prime256v1') return 'ES256';
  if (asymmetricKeyDetails?.namedCurve === 'secp384r1') return 'ES384';
  return undefined;
}

/** Some platforms keep a variable on one line. */
function unescaped(pem: string): string {
  return pem.replaceAll('\\n', '\n');
}

async function readKept(dataDir: string): Promise<string | undefined> {
  try {
    return await readFile(join(dataDir, FOLDER, FILE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Of processes that come here at once, one's chain appears, whole, and all of them use it. */
async function makeKept(dataDir: string): Promise<string> {
  const { makeCertificateChain } = await import('./certificate-chain.ts');
  const { certificate, privateKey } = await makeCertificateChain();
  const folder = join(dataDir, FOLDER);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = join(folder, `${randomUUID()}.tmp`);
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(privateKey + certificate);
      await file.sync();
    } finally {
      await file.close();
    }
    // a link is refused where a file is already: renaming would replace the other's
    await link(temporary, join(folder, FILE));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(temporary, { force: true });
  }
  return readFile(join(folder, FILE), 'utf8');
}
