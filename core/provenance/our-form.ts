/**
 * Whether a manifest that carries this service's certificate is, byte for byte, of the form in which this service writes one. A
 * signature covers the claim and what it names; the boxes around them, padding and unprotected headers it does not.
 */
import type { SuperBox } from '@trustnxt/c2pa-ts/jumbf';
import type { ManifestStore } from '@trustnxt/c2pa-ts/manifest';
import type { ManifestPlace } from './picture-parts.ts';

/** What the library writes. */
const BOX_INSTANCE = 0x0211;

/** Call it last: it writes the signature's box anew. */
export function isInOurForm(store: ManifestStore, { jumbf, boxInstance }: ManifestPlace): boolean {
  if (boxInstance !== undefined && boxInstance !== BOX_INSTANCE) return false;
  const [manifest, ...others] = store.manifests;
  const outer = store.sourceBox;
  const inner = manifest?.sourceBox;
  if (others.length > 0 || outer === undefined || inner === undefined || manifest === undefined) return false;
  const { assertions, claim, signature } = manifest;
  const parts = [assertions?.sourceBox, claim?.sourceBox, signature?.sourceBox];
  const assertionBoxes = assertions?.assertions.map(({ sourceBox }) => sourceBox) ?? [];
  const leaves = [...assertionBoxes, claim?.sourceBox, signature?.sourceBox];
  const signatureBefore = signature?.sourceBox?.toBuffer();
  try {
    return (
      isPlain(outer, 'c2pa', [inner]) &&
      isPlain(inner, manifest.label, parts) &&
      isPlain(assertions?.sourceBox, 'c2pa.assertions', assertionBoxes) &&
      leaves.every((box) => isPlain(box, box?.descriptionBox?.label, box?.contentBoxes.slice(0, 1) ?? [])) &&
      sameBytes(outer.toBuffer(false), jumbf) &&
      claim !== undefined &&
      sameBytes(signature?.getBytes(claim, true), signatureBefore)
    );
  } catch {
    return false; // a box that cannot be written is not ours
  }
}

/** A labelled box that can be asked for, with nothing in it but `contents`. */
function isPlain(
  box: SuperBox | undefined,
  label: string | undefined,
  contents: readonly unknown[],
): boolean {
  const description = box?.descriptionBox;
  return (
    box !== undefined &&
    description?.label === label &&
    description?.requestable === true &&
    description.id === undefined &&
    description.hash === undefined &&
    description.privateBoxes.length === 0 &&
    box.contentBoxes.length === contents.length &&
    box.contentBoxes.every((one, index) => one === contents[index])
  );
}

function sameBytes(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return one !== undefined && other !== undefined && Buffer.compare(one, other) === 0;
}
