/** Pictures that somebody changed after they were signed: each is reported with what is wrong, whatever was done to it. */
import { expect } from 'chai';
import fc from 'fast-check';
import { after, before, describe, it } from 'mocha';
import { checkManifest } from '../../../core/provenance/check-manifest.ts';
import { ownCertificate } from '../../../core/provenance/identity.ts';
import { type Inspection, newInspection } from '../../../core/provenance/inspection.ts';
import { type Inspector, makeInspector } from '../../../core/provenance/inspector.ts';
import { findManifests } from '../../../core/provenance/picture-parts.ts';
import {
  FORMATS,
  type Format,
  flipped,
  makeBoughtIdentity,
  makeIdentityConfig,
  makePicture,
  makeSigned,
  placeOf,
  withChecksum,
} from '../../helpers/c2pa.ts';
import { addToLength, box, description } from '../../helpers/jumbf.ts';
import { pngChunk } from '../../helpers/pictures.ts';

describe('a picture changed after it was signed', () => {
  let config: Awaited<ReturnType<typeof makeIdentityConfig>>;
  let inspector: Inspector;
  const signed = {} as Record<Format, Buffer>;
  before(async () => {
    config = await makeIdentityConfig();
    inspector = makeInspector(config);
    for (const format of FORMATS) signed[format] = await makeSigned(config, format, 24);
  });
  after(() => inspector.close());

  const codesOf = (inspection: Inspection | undefined) => inspection?.problems.map(({ code }) => code) ?? [];
  const inspect = async (bytes: Buffer): Promise<Inspection> => {
    const inspection = await inspector.inspect(bytes);
    if (inspection === undefined) throw new Error('no picture');
    return inspection;
  };

  it('is never valid, whichever byte was changed', async () => {
    const own = (await ownCertificate(config))?.raw;
    const { jpeg } = signed;
    const end = placeOf(jpeg).start + placeOf(jpeg).length;
    const missed: number[] = [];
    // the manifest and what frames it; of the picture every 50th byte, all of which one hash covers
    for (let at = 0; at < jpeg.length; at += at < end ? 1 : 50) {
      const parts = findManifests(flipped(jpeg, at));
      const [place] = parts?.manifests ?? [];
      if (parts === undefined || place === undefined) continue; // no manifest any more: told as such
      const inspection = newInspection(parts.format, true);
      await checkManifest(flipped(jpeg, at), place, own, inspection);
      if (inspection.valid !== false || inspection.problems.length === 0) missed.push(at);
    }
    expect(missed).to.deep.equal([]);
  }).timeout(60_000);

  it('is never valid, and never a failure of ours, however much was changed', async () => {
    const change = fc.record({
      at: fc.nat(),
      bytes: fc.uint8Array({ minLength: 1, maxLength: 40 }),
      how: fc.constantFrom('overwrite', 'insert', 'remove'),
    });
    const run = fc.asyncProperty(
      fc.constantFrom(...FORMATS),
      fc.array(change, { minLength: 1, maxLength: 4 }),
      async (format, changes) => {
        let bytes = signed[format];
        for (const { at, bytes: what, how } of changes) {
          const from = at % bytes.length;
          const to = how === 'insert' ? from : from + what.length;
          const middle = how === 'remove' ? Buffer.alloc(0) : what;
          bytes = Buffer.concat([bytes.subarray(0, from), middle, bytes.subarray(to)]);
        }
        const inspection = await inspector.inspect(bytes);
        if (bytes.equals(signed[format])) return;
        expect(inspection?.valid ?? null).to.not.equal(true);
      },
    );
    await fc.assert(run, { numRuns: 300 });
  }).timeout(60_000);

  for (const format of FORMATS) {
    it(`is reported when it is cut short anywhere (${format})`, async () => {
      const whole = signed[format];
      const { start, length } = placeOf(whole);
      for (let size = 12; size < whole.length; size += 101) {
        const inspection = await inspect(whole.subarray(0, size));
        if (size < start + length) {
          expect(inspection, `${size} bytes`).to.deep.include({ valid: null, has_manifest: false });
          expect(codesOf(inspection)).to.deep.equal(['file.malformed']);
        } else {
          expect(inspection, `${size} bytes`).to.deep.include({ valid: false, has_manifest: true });
          expect(inspection.hashes.valid).to.equal(false);
          expect(inspection.signature.valid).to.equal(true);
        }
      }
    });

    it(`is reported when something was put behind it (${format})`, async () => {
      const inspection = await inspect(Buffer.concat([signed[format], Buffer.from('more')]));
      expect(inspection.valid).to.equal(false);
      expect(codesOf(inspection)).to.deep.equal(['assertion.dataHash.mismatch']);
    });

    it(`is reported when its manifest was moved to another picture (${format})`, async () => {
      const { start, length } = placeOf(signed[format]);
      const other = await makePicture(format, 24);
      const moved = Buffer.concat([
        other.subarray(0, start),
        signed[format].subarray(start, start + length),
        other.subarray(start),
      ]);
      const inspection = await inspect(moved);
      expect(inspection).to.deep.include({ has_manifest: true, valid: false, hashes: { valid: false } });
      expect(inspection.signature).to.deep.include({ valid: true, signed_by_this_service: true });
      expect(codesOf(inspection)).to.deep.equal(['assertion.dataHash.mismatch']);
    });
  }

  it('is reported when the signature’s padding made room for a part of another picture', async () => {
    const { png } = signed;
    const { start, length } = placeOf(png);
    const chunk = pngChunk('tEXt', Buffer.from('Comment\0forged'));
    const shrunk = shrinkPadding(jumbfOf(png), chunk.length);
    const forged = withManifest(png, shrunk, [chunk]);
    expect(forged.length).to.equal(png.length);
    expect(forged.subarray(start + length).equals(png.subarray(start + length))).to.equal(true);
    const inspection = await inspect(forged);
    expect(inspection.signature.valid).to.equal(true);
    expect(inspection).to.deep.include({ valid: false, hashes: { valid: false } });
    expect(codesOf(inspection)).to.include('assertion.dataHash.mismatch');
  });

  it('is reported when the signature’s padding made room for an assertion that nobody signed', async () => {
    const { png } = signed;
    const assertion = box('jumb', description('json', 'x'), box('json', Buffer.from('{}')));
    const store = shrinkPadding(jumbfOf(png), assertion.length);
    const at = store.indexOf('c2pa.claim.v2') - 33; // the box behind the assertion store
    const forged = Buffer.concat([store.subarray(0, at), assertion, store.subarray(at)]);
    const around = ['urn:c2pa:', 'c2pa.assertions\0'].map((label) => forged.indexOf(label) - 33);
    for (const start of [0, ...around]) addToLength(forged, start, assertion.length);
    const inspection = await inspect(withManifest(png, forged));
    expect(inspection.assertions.map(({ label }) => label)).to.include('x');
    expect(inspection).to.deep.include({ valid: false, hashes: { valid: false } });
    expect(codesOf(inspection)).to.include('assertion.undeclared');
  });

  it('is reported when its checksum was not made good, and when it was', async () => {
    const { png } = signed;
    const changed = flipped(png, png.indexOf('xmp:iid:') + 12);
    expect(codesOf(await inspect(changed))).to.deep.equal(['manifest.malformed', 'claimSignature.mismatch']);
    expect(codesOf(await inspect(withChecksum(changed)))).to.deep.equal(['claimSignature.mismatch']);
  });

  it('is reported when it was given two manifests', async () => {
    const { png } = signed;
    const { start, length } = placeOf(png);
    const twice = Buffer.concat([png.subarray(0, start + length), png.subarray(start)]);
    const inspection = await inspect(twice);
    expect(inspection).to.deep.include({ has_manifest: true, valid: false });
    expect(codesOf(inspection)).to.deep.equal(['manifest.multiple']);
  });

  it('is not what one is whose certificate has expired: that is told apart', async () => {
    const expired = await makeBoughtIdentity({ notAfter: new Date(Date.now() - 1000) });
    const inspection = await inspect(await makeSigned(expired, 'png'));
    expect(inspection).to.deep.include({ valid: false, hashes: { valid: true } });
    expect(inspection.signature.valid).to.equal(false);
    expect(codesOf(inspection)).to.deep.equal(['signingCredential.expired']);
  });
});

function jumbfOf(bytes: Buffer): Buffer {
  return Buffer.from(placeOf(bytes).jumbf);
}

/** Takes bytes from the zeros that no signature covers, and corrects every length around them. */
function shrinkPadding(jumbf: Buffer, bytes: number): Buffer {
  const pad = jumbf.lastIndexOf(Buffer.concat([Buffer.from('cpad'), Buffer.from([0x58])]));
  const length = jumbf[pad + 5] ?? 0;
  if (pad < 0 || length - bytes < 24) throw new Error(`${length} bytes of padding are not enough`);
  const shrunk = Buffer.concat([jumbf.subarray(0, pad + 6), jumbf.subarray(pad + 6 + bytes)]);
  shrunk[pad + 5] = length - bytes;
  const signature = shrunk.indexOf('c2pa.signature\0') - 33;
  addToLength(shrunk, signature + 8 + shrunk.readUInt32BE(signature + 8), -bytes); // its content
  for (const at of [0, shrunk.indexOf('urn:c2pa:') - 33, signature]) addToLength(shrunk, at, -bytes);
  return shrunk;
}

function withManifest(png: Buffer, jumbf: Buffer, further: readonly Buffer[] = []): Buffer {
  const { start, length } = placeOf(png);
  const parts = [png.subarray(0, start), pngChunk('caBX', jumbf), ...further, png.subarray(start + length)];
  return Buffer.concat(parts);
}
