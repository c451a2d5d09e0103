/**
 * Signed pictures for tests, and a C2PA reader that shares no code with ours: contentauth's (Rust, as WebAssembly; its binary is
 * in its package).
 */
import { KeyObject, randomUUID, webcrypto } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32 } from 'node:zlib';
import startWasm, { WasmReader } from '@contentauth/c2pa-wasm';
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
import sharp from 'sharp';
import { makeCertificateChain } from '../../core/provenance/certificate-chain.ts';
import type { IdentityConfig, SigningAlgorithm } from '../../core/provenance/identity.ts';
import type { PictureToSign } from '../../core/provenance/manifest.ts';
import { findManifests, type ManifestPlace } from '../../core/provenance/picture-parts.ts';
import { makeSigner } from '../../core/provenance/signer.ts';

export const FORMATS = ['png', 'jpeg'] as const;
export type Format = (typeof FORMATS)[number];

export interface IndependentReading {
  /** `Invalid`, `Valid` (whole, signer unknown), `Trusted` (signer below a root that was given). */
  readonly state: string;
  /** C2PA status codes. */
  readonly failures: readonly string[];
  readonly manifest: {
    readonly title?: string;
    readonly claim_generator_info: readonly { readonly name: string; readonly version: string }[];
    readonly assertions: readonly { readonly label: string; readonly data: unknown }[];
    readonly signature_info: { readonly alg: string };
  };
}

let ready: Promise<unknown> | undefined;

/** Rejects when the reader cannot make anything of the file. */
export async function readIndependently(
  format: Format,
  bytes: Uint8Array,
  trustAnchor?: string,
): Promise<IndependentReading> {
  ready ??= readFile(fileURLToPath(import.meta.resolve('@contentauth/c2pa-wasm/c2pa.wasm'))).then((binary) =>
    startWasm({ module_or_path: binary }),
  );
  await ready;
  const settings =
    trustAnchor === undefined ? undefined : JSON.stringify({ trust: { trust_anchors: trustAnchor } });
  const reader = await WasmReader.fromBytes(`image/${format}`, new Uint8Array(bytes), settings);
  const store = JSON.parse(reader.json());
  reader.free();
  return {
    state: store.validation_state,
    failures: store.validation_results.activeManifest.failure.map(({ code }: { code: string }) => code),
    manifest: store.manifests[store.active_manifest],
  };
}

/** Coloured noise, which hardly compresses: about 3 bytes a pixel as PNG. */
export function makePicture(format: Format, width = 64, height = width): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: 60 } as const;
  const picture = sharp({ create: { width, height, channels: 3, background: '#888', noise } });
  // a quality makes sharp write a PNG with a palette
  return (format === 'png' ? picture.png() : picture.jpeg({ quality: 95 })).toBuffer();
}

/** A chain as the environment gives it, without anything on disk. */
export async function makeIdentityConfig(): Promise<IdentityConfig & { readonly rootPem: string }> {
  const { certificate, privateKey } = await makeCertificateChain();
  const rootPem = certificate.slice(certificate.lastIndexOf('-----BEGIN'));
  return { dataDir: '/nonexistent', c2paCertificate: certificate, c2paPrivateKey: privateKey, rootPem };
}

export function pictureToSign(format: Format, changes: Partial<PictureToSign> = {}): PictureToSign {
  return {
    contentType: `image/${format}`,
    model: 'image-test',
    createdAt: new Date('2026-05-04T03:02:01.000Z'),
    requestId: randomUUID(),
    ...changes,
  };
}

export async function makeSigned(config: IdentityConfig, format: Format, side = 64): Promise<Buffer> {
  return makeSigner(config).sign(await makePicture(format, side), pictureToSign(format));
}

export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-c2pa-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const KEYS = {
  ES256: [
    { name: 'ECDSA', namedCurve: 'P-256' },
    { name: 'ECDSA', hash: 'SHA-256' },
  ],
  ES384: [
    { name: 'ECDSA', namedCurve: 'P-384' },
    { name: 'ECDSA', hash: 'SHA-384' },
  ],
  Ed25519: [{ name: 'Ed25519' }, { name: 'Ed25519' }],
} as const;

export interface LeafChanges {
  readonly algorithm?: SigningAlgorithm;
  readonly usages?: readonly string[];
  readonly notAfter?: Date;
}

/** Three levels, as certificates that are bought have: root, intermediate, leaf. */
export async function makeBoughtIdentity(
  leafChanges: LeafChanges = {},
): Promise<IdentityConfig & { readonly rootPem: string }> {
  const { subtle } = webcrypto;
  const { algorithm = 'ES256', usages = [ExtendedKeyUsage.emailProtection] } = leafChanges;
  const [keyAlgorithm, signingAlgorithm] = KEYS[algorithm];
  const makeKeys = () =>
    subtle.generateKey(keyAlgorithm, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>;
  const [rootKeys, middleKeys, leafKeys] = await Promise.all([makeKeys(), makeKeys(), makeKeys()]);
  const common = {
    notBefore: new Date(Date.now() - 86_400_000),
    notAfter: leafChanges.notAfter ?? new Date(Date.now() + 86_400_000),
    signingAlgorithm,
  };
  const authority = async (keys: webcrypto.CryptoKeyPair) => [
    new BasicConstraintsExtension(true, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
    await SubjectKeyIdentifierExtension.create(keys.publicKey),
    await AuthorityKeyIdentifierExtension.create(rootKeys.publicKey),
  ];
  const root = await X509CertificateGenerator.createSelfSigned({
    ...common,
    name: 'O=Seller, CN=Root',
    keys: rootKeys,
    extensions: await authority(rootKeys),
  });
  const middle = await X509CertificateGenerator.create({
    ...common,
    subject: 'O=Seller, CN=Intermediate',
    issuer: root.subject,
    publicKey: middleKeys.publicKey,
    signingKey: rootKeys.privateKey,
    extensions: await authority(middleKeys),
  });
  const leaf = await X509CertificateGenerator.create({
    ...common,
    subject: 'O=Customer, CN=Pictures',
    issuer: middle.subject,
    publicKey: leafKeys.publicKey,
    signingKey: middleKeys.privateKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([...usages]),
      await AuthorityKeyIdentifierExtension.create(middleKeys.publicKey),
    ],
  });
  return {
    dataDir: '/nonexistent',
    c2paCertificate: [leaf, middle, root].map((one) => one.toString('pem')).join('\n'),
    c2paPrivateKey: String(KeyObject.from(leafKeys.privateKey).export({ type: 'pkcs8', format: 'pem' })),
    rootPem: root.toString('pem'),
  };
}

/** Of a PNG whose manifest was changed: with the checksum of that chunk made good. */
export function withChecksum(png: Buffer): Buffer {
  const { start, length } = placeOf(png);
  const copy = Buffer.from(png);
  copy.writeUInt32BE(crc32(copy.subarray(start + 4, start + length - 4)), start + length - 4);
  return copy;
}

/** Where the one manifest of a picture lies. */
export function placeOf(bytes: Buffer): ManifestPlace {
  const [place] = findManifests(bytes)?.manifests ?? [];
  if (place === undefined) throw new Error('no manifest');
  return place;
}

export function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
