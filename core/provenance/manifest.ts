/**
 * Writes the C2PA manifest of a picture that a model made, and binds it to the picture's bytes. Loads the C2PA library: imported
 * by `signer.ts` when the first picture is signed.
 */
import { type KeyObject, sign as signBytes } from 'node:crypto';
import { X509Certificate } from '@peculiar/x509';
import { JPEG, PNG } from '@trustnxt/c2pa-ts/asset';
import { CoseAlgorithmIdentifier, type Signer } from '@trustnxt/c2pa-ts/cose';
import type { CBORBox } from '@trustnxt/c2pa-ts/jumbf';
import {
  ActionAssertion,
  ActionType,
  type Claim,
  ClaimVersion,
  DataHashAssertion,
  DigitalSourceType,
  ManifestStore,
} from '@trustnxt/c2pa-ts/manifest';
import { Tag } from 'cbor-x';
import { v4 as uuidv4 } from 'uuid';
import packageJson from '../../package.json' with { type: 'json' };
import type { Identity, SigningAlgorithm } from './identity.ts';

export interface PictureToSign {
  readonly contentType: 'image/png' | 'image/jpeg';
  /** The model's id in our catalogue. */
  readonly model: string;
  readonly createdAt: Date;
  /** On our books. */
  readonly requestId: string;
  readonly instanceTitle?: string;
}

/** What readers show as the claim's generator. */
const GENERATOR = 'svc';

/** Bytes of a signature; `hash` as Node's `sign` wants it. */
const ALGORITHMS: Readonly<
  Record<SigningAlgorithm, { cose: CoseAlgorithmIdentifier; hash: string | null; bytes: number }>
> = {
  ES256: { cose: CoseAlgorithmIdentifier.ES256, hash: 'sha256', bytes: 64 },
  ES384: { cose: CoseAlgorithmIdentifier.ES384, hash: 'sha384', bytes: 96 },
  Ed25519: { cose: CoseAlgorithmIdentifier.Ed25519, hash: null, bytes: 64 },
};

/**
 * Room left for the signature before it is known; what stays unused is zeros in every picture. The library's 25,000 bytes are
 * for timestamps, which we do not take. Enough that neither length needs another byte to be written once the room is used.
 */
const SPARE_BYTES = 100;

const TAG_DATE_TIME = 0;

export function makeCoseSigner(identity: Identity): Signer {
  const [certificate, ...chainCertificates] = identity.certificates.map(
    (one) => new X509Certificate(one.raw),
  );
  if (certificate === undefined) throw new Error('an identity has a certificate');
  const { cose, hash } = ALGORITHMS[identity.algorithm];
  return {
    certificate,
    chainCertificates,
    algorithm: cose,
    sign: (payload) => signInThreadPool(hash, payload, identity.privateKey),
  };
}

function signInThreadPool(hash: string | null, payload: Uint8Array, key: KeyObject): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  // COSE wants both numbers of an elliptic signature side by side (RFC 9053, section 2.1), not in ASN.1
  signBytes(hash, payload, { key, dsaEncoding: 'ieee-p1363' }, (error, signature) => {
    if (error === null) resolve(signature);
    else reject(error);
  });
  return promise;
}

/** `bytes` carry no manifest yet. */
export async function signPicture(bytes: Buffer, picture: PictureToSign, signer: Signer): Promise<Buffer> {
  const asset = picture.contentType === 'image/png' ? new PNG(bytes) : new JPEG(bytes);
  const store = new ManifestStore();
  const manifest = store.createManifest({
    claimVersion: ClaimVersion.V2,
    assetFormat: picture.contentType,
    instanceID: `xmp:iid:${uuidv4()}`,
    defaultHashAlgorithm: 'SHA-256',
    signer,
  });
  const { claim, signature } = manifest;
  if (claim === undefined || signature === undefined) throw new Error('a new manifest has its parts');
  claim.claimGeneratorName = GENERATOR;
  claim.claimGeneratorVersion = packageJson.version;
  if (picture.instanceTitle !== undefined) claim.title = picture.instanceTitle;
  // the whole path binds the manifest's label, which nothing else signs
  claim.signatureRef = `self#jumbf=/c2pa/${manifest.label}/${signature.label}`;
  const { bytes: signatureBytes = 0 } =
    Object.values(ALGORITHMS).find(({ cose }) => cose === signer.algorithm) ?? {};
  signature.signatureData.paddingLength = signatureBytes + SPARE_BYTES;

  const dataHash = DataHashAssertion.create('SHA-256', SPARE_BYTES);
  manifest.addAssertion(new CreationAssertion(picture));
  manifest.addAssertion(dataHash);

  await asset.ensureManifestSpace(store.measureSize());
  await dataHash.updateWithAsset(asset);
  await manifest.sign(signer);
  await asset.writeManifestJUMBF(store.getBytes());
  const signed = await asset.getDataRange();
  return Buffer.from(signed.buffer, signed.byteOffset, signed.byteLength);
}

/** `c2pa.created` by a model. The library's own assertion leaves out when it was. */
class CreationAssertion extends ActionAssertion {
  readonly #createdAt: Date;

  constructor({ model, createdAt, requestId }: PictureToSign) {
    super();
    this.#createdAt = createdAt;
    this.actions = [
      {
        action: ActionType.C2paCreated,
        digitalSourceType: DigitalSourceType.TrainedAlgorithmicMedia,
        softwareAgent: { name: model },
        parameters: { 'svc.request_id': requestId },
      },
    ];
  }

  override generateJUMBFBoxForContent(claim: Claim): CBORBox {
    const box = super.generateJUMBFBoxForContent(claim) as CBORBox;
    const { actions } = box.content as { actions: Record<string, unknown>[] };
    for (const action of actions) action.when = new Tag(this.#createdAt.toISOString(), TAG_DATE_TIME);
    return box;
  }
}
