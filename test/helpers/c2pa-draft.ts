/** Manifests that are a test's to spoil before they are signed: what other software writes, or an attacker. */
import type { JPEG, PNG } from '@trustnxt/c2pa-ts/asset';
import type { Signer } from '@trustnxt/c2pa-ts/cose';
import {
  AssertionLabels,
  type Claim,
  ClaimVersion,
  DataHashAssertion,
  ManifestStore,
} from '@trustnxt/c2pa-ts/manifest';
import { type IdentityConfig, loadIdentity } from '../../core/provenance/identity.ts';
import { makeCoseSigner } from '../../core/provenance/manifest.ts';

export interface Draft {
  readonly store: ManifestStore;
  readonly manifest: ReturnType<ManifestStore['createManifest']>;
  readonly claim: Claim;
  readonly signer: Signer;
}

/** A manifest that is ours to spoil before it is signed. */
export async function newDraft(config: IdentityConfig): Promise<Draft> {
  const signer = makeCoseSigner(await loadIdentity(config));
  const store = new ManifestStore();
  const manifest = store.createManifest({
    claimVersion: ClaimVersion.V2,
    assetFormat: 'image/any',
    instanceID: 'xmp:iid:x',
    defaultHashAlgorithm: 'SHA-256',
    signer,
  });
  if (manifest.claim === undefined) throw new Error('a new manifest has a claim');
  return { store, manifest, claim: manifest.claim, signer };
}

export async function sealed(
  { store, manifest, signer }: Draft,
  asset: PNG | JPEG,
  bindingLabel: string = AssertionLabels.dataHash,
): Promise<Buffer> {
  const binding = DataHashAssertion.create('SHA-256');
  binding.label = bindingLabel;
  manifest.addAssertion(binding);
  await asset.ensureManifestSpace(store.measureSize());
  await binding.updateWithAsset(asset);
  await manifest.sign(signer);
  await asset.writeManifestJUMBF(store.getBytes());
  return Buffer.from(await asset.getDataRange());
}
