/**
 * Reads and checks the manifest of one picture: signature, hashes, and what the library leaves to its caller (its issue 68: that
 * nothing but the manifest is left out of the hash; undeclared assertions; bindings it does not know). Loads the C2PA library and
 * parses what strangers send: runs in a thread of its own (`inspect-thread.ts`), which bounds its time.
 */
import { CoseAlgorithmIdentifier } from '@trustnxt/c2pa-ts/cose';
import { CBORBox, JSONBox, SuperBox } from '@trustnxt/c2pa-ts/jumbf';
import {
  ActionAssertion,
  type Assertion,
  DataHashAssertion,
  type Manifest,
  ManifestStore,
  ValidationError,
  ValidationResult,
  ValidationStatusCode,
} from '@trustnxt/c2pa-ts/manifest';
import type { Inspection, Problem } from './inspection.ts';
import { checkJumbf, JumbfFault } from './jumbf-bounds.ts';
import { isInOurForm } from './our-form.ts';
import type { ManifestPlace } from './picture-parts.ts';
import { makeBudget, toPlain, toText, toTime } from './plain.ts';
import { completeTimestamps } from './timestamps.ts';

const MAX_SHOWN_ASSERTIONS = 100;

/** Fills in an inspection; rejects never. `ownCertificate`: DER of what this service signs with, where that is known. */
export async function checkManifest(
  bytes: Uint8Array,
  place: ManifestPlace,
  ownCertificate: Uint8Array | undefined,
  inspection: Inspection,
): Promise<void> {
  const { problems } = inspection;
  if (place.fault !== undefined) problems.push({ code: 'manifest.malformed', detail: place.fault });
  try {
    checkJumbf(place.jumbf);
    const boxes = SuperBox.fromBuffer(new Uint8Array(place.jumbf));
    completeTimestamps(boxes);
    const store = ManifestStore.read(boxes);
    const manifest = store.getActiveManifest();
    if (manifest === undefined) throw new ValidationError(ValidationStatusCode.ClaimMissing);
    describe(manifest, inspection);
    await check(bytes, place, manifest, inspection);
    if (ownCertificate !== undefined) judgeSigner(place, store, ownCertificate, inspection);
  } catch (error) {
    problems.push(problemOf(error));
  }
  const faults = problems.filter(({ code }) => !UNCHECKED.includes(code) && !isNote(code));
  const isUnchecked = problems.some(({ code }) => UNCHECKED.includes(code));
  inspection.valid = faults.length > 0 ? false : isUnchecked ? null : inspection.hashes.valid;
}

const TOO_LARGE = 'manifest.too_large';
const UNKNOWN_BINDING = 'hash_binding.unsupported';
/**
 * What says nothing against a manifest: it was not looked at, or by rules that the library knows in part (it finds fault with
 * manifests that the editors in use write, and that the reference implementation finds valid).
 */
const UNCHECKED: readonly string[] = [
  TOO_LARGE,
  UNKNOWN_BINDING,
  ValidationStatusCode.AssertionActionIngredientMismatch,
  ValidationStatusCode.ManifestUpdateWrongParents,
];

/** C2PA 2.1, section 15.2.2: a timestamp that does not count is no failure; the certificate must then be valid today. */
function isNote(code: string): boolean {
  return code.startsWith('timeStamp.');
}

function problemOf(error: unknown): Problem {
  if (error instanceof ValidationError) {
    return { code: error.code, detail: toText(error.message || inWords(error.code)) };
  }
  if (error instanceof JumbfFault) {
    return { code: error.isTooLarge ? TOO_LARGE : 'manifest.malformed', detail: error.message };
  }
  return { code: 'manifest.malformed', detail: 'it cannot be read' };
}

function describe({ claim, assertions, signature }: Manifest, inspection: Inspection): void {
  const budget = makeBudget();
  const { claimGeneratorName: name, claimGeneratorVersion: version, title } = claim ?? {};
  if (typeof name === 'string') {
    inspection.claim_generator = toText(typeof version === 'string' ? `${name}/${version}` : name);
  }
  if (typeof title === 'string') inspection.title = toText(title);
  const known = assertions?.assertions ?? [];
  inspection.assertions = known.slice(0, MAX_SHOWN_ASSERTIONS).map((assertion) => ({
    label: toText(assertion.fullLabel ?? ''),
    data: toPlain(contentOf(assertion), budget),
  }));
  const { certificate, algorithm, timestamp } = signature?.signatureData ?? {};
  inspection.created_at = timeOfCreation(known) ?? toTime(timestamp);
  if (algorithm !== undefined) {
    inspection.signature.algorithm = CoseAlgorithmIdentifier[algorithm.coseIdentifier] ?? null;
  }
  if (certificate !== undefined) {
    inspection.signature.issuer = toText(certificate.issuer);
    inspection.signature.subject = toText(certificate.subject);
  }
}

function contentOf({ sourceBox }: Assertion): unknown {
  const box = sourceBox?.contentBoxes[0];
  return box instanceof CBORBox || box instanceof JSONBox ? box.content : undefined;
}

/** The library's reading of an action leaves out when it was. */
function timeOfCreation(assertions: readonly Assertion[]): string | null {
  const actions = assertions
    .filter((assertion) => assertion instanceof ActionAssertion)
    .flatMap(
      (assertion) => (contentOf(assertion) as { actions: { action: unknown; when?: unknown }[] }).actions,
    );
  return toTime(actions.find(({ action }) => action === 'c2pa.created')?.when);
}

async function check(
  bytes: Uint8Array,
  place: ManifestPlace,
  manifest: Manifest,
  inspection: Inspection,
): Promise<void> {
  const file = {
    mimeType: '',
    getDataLength: () => bytes.length,
    getDataRange: (start = 0, length = bytes.length - start) =>
      Promise.resolve(bytes.subarray(start, start + length)),
    getManifestJUMBF: () => place.jumbf,
    getHashExclusionRange: () => ({ start: place.start, length: place.length }),
    dumpInfo: () => '',
    ensureManifestSpace: readOnly,
    writeManifestJUMBF: readOnly,
  };
  const result = new ValidationResult();
  const binding = manifest.assertions?.getHardBindings()[0];
  result.merge(await manifest.validate(file));
  const isBound = result.statusEntries.some(({ code }) => code.startsWith('assertion.dataHash.'));
  // it stops before the picture when something else is wrong: what is wrong with that is worth knowing all the same
  if (!isBound && binding instanceof DataHashAssertion)
    result.merge(await binding.validateAgainstAsset(file));
  for (const uri of undeclaredAssertions(manifest)) {
    result.addError(ValidationStatusCode.AssertionUndeclared, uri);
  }
  if (binding instanceof DataHashAssertion && !leavesOutOnly(place, binding)) {
    const detail = 'the hash leaves out other bytes than the manifest';
    result.addError(ValidationStatusCode.AssertionDataHashMismatch, binding.sourceBox, detail);
  }
  judge(result, binding, inspection);
}

function judge({ statusEntries }: ValidationResult, binding: Assertion | undefined, inspection: Inspection) {
  const failures = statusEntries.filter(({ success }) => success !== true);
  for (const { code, explanation, url } of failures) {
    const detail = explanation || (url === undefined ? inWords(code) : `${inWords(code)}: ${url}`);
    inspection.problems.push({ code, detail: toText(detail) });
  }
  const holds = (code: string) =>
    statusEntries.some((entry) => entry.code === code && entry.success === true);
  const fails = (codes: RegExp) => failures.some(({ code }) => codes.test(code) && !UNCHECKED.includes(code));
  inspection.signature.valid =
    holds('claimSignature.validated') && !fails(/^(claimSignature|signingCredential)\./);
  if (fails(/^(assertion|hashedURI|ingredient|claim\.hardBindings)\./)) {
    inspection.hashes.valid = false;
  } else if (holds('assertion.dataHash.match')) {
    inspection.hashes.valid = true;
  } else {
    const label = toText(binding?.fullLabel ?? 'nothing');
    inspection.problems.push({
      code: UNKNOWN_BINDING,
      detail: `${label} binds it to the picture: not checked here`,
    });
  }
}

function readOnly(): Promise<void> {
  return Promise.reject(new Error('an inspected file is not written to'));
}

/** What lies in the manifest and is not named by its claim could be put there by anybody. */
function undeclaredAssertions({ label, claim, assertions }: Manifest): string[] {
  const declared = new Set(
    [...(claim?.assertions ?? []), ...(claim?.gatheredAssertions ?? [])].map(({ uri }) =>
      uri.replace(`self#jumbf=/c2pa/${label}/`, 'self#jumbf='),
    ),
  );
  const seen = new Set<string>();
  return (assertions?.assertions ?? [])
    .map((assertion) => `self#jumbf=${assertions?.label}/${assertion.fullLabel}`)
    .filter((uri) => {
      const isSecond = seen.has(uri); // one of two by the same name is not the one that was signed
      seen.add(uri);
      return isSecond || !declared.has(uri);
    });
}

/** C2PA 2.1, section 15.12.1: what the hash leaves out may be the manifest store and nothing else. */
function leavesOutOnly(place: ManifestPlace, { exclusions }: DataHashAssertion): boolean {
  const [exclusion, ...others] = exclusions;
  return others.length === 0 && exclusion?.start === place.start && exclusion.length === place.length;
}

/** `assertion.dataHash.mismatch` as "assertion data hash mismatch". */
function inWords(code: string): string {
  return code
    .replaceAll('.', ' ')
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase();
}

/** The library checks no chain: it says nothing of who signed. A certificate equal to ours, and a signature by its key, does. */
function judgeSigner(
  place: ManifestPlace,
  store: ManifestStore,
  ownCertificate: Uint8Array,
  inspection: Inspection,
): void {
  const certificate = store.getActiveManifest()?.signature?.signatureData.certificate;
  const isOurs = certificate !== undefined && Buffer.from(certificate.rawData).equals(ownCertificate);
  inspection.signature.signed_by_this_service = isOurs && inspection.signature.valid === true;
  if (isOurs && !isInOurForm(store, place)) {
    inspection.problems.push({ code: 'manifest.altered', detail: 'it is not as this service writes it' });
  }
}
