/** What is signed: read back by our inspection, and by a reader that shares no code with it. */
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import sharp from 'sharp';
import { type Inspector, makeInspector } from '../../../core/provenance/inspector.ts';
import { findManifests } from '../../../core/provenance/picture-parts.ts';
import { makeSigner } from '../../../core/provenance/signer.ts';
import {
  FORMATS,
  flipped,
  makeBoughtIdentity,
  makeIdentityConfig,
  makePicture,
  makeSigned,
  pictureToSign,
  placeOf,
  readIndependently,
  withChecksum,
} from '../../helpers/c2pa.ts';

const MAX_ADDED_BYTES = 2600;
const TRAINED_ALGORITHMIC_MEDIA = 'http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia';

describe('a signed picture', () => {
  let config: Awaited<ReturnType<typeof makeIdentityConfig>>;
  let inspector: Inspector;
  before(async () => {
    config = await makeIdentityConfig();
    inspector = makeInspector(config);
  });
  after(() => inspector.close());

  for (const format of FORMATS) {
    describe(`as ${format.toUpperCase()}`, () => {
      it('says that a model made it, which, when, and for which request', async () => {
        const picture = pictureToSign(format, { instanceTitle: 'A title, 題' });
        const signed = await makeSigner(config).sign(await makePicture(format), picture);
        const inspection = await inspector.inspect(signed);
        const { manifest } = await readIndependently(format, signed);
        const action = {
          action: 'c2pa.created',
          digitalSourceType: TRAINED_ALGORITHMIC_MEDIA,
          softwareAgent: { name: picture.model },
          parameters: { 'svc.request_id': picture.requestId },
          when: picture.createdAt.toISOString(),
        };
        expect(inspection?.claim_generator).to.match(/^svc\/\d+\.\d+\.\d+$/);
        expect(inspection).to.deep.include({
          has_manifest: true,
          format,
          title: 'A title, 題',
          created_at: picture.createdAt.toISOString(),
          hashes: { valid: true },
          valid: true,
          problems: [],
        });
        expect(inspection?.signature).to.deep.include({
          valid: true,
          algorithm: 'ES256',
          signed_by_this_service: true,
        });
        expect(inspection?.assertions[0]).to.deep.equal({
          label: 'c2pa.actions.v2',
          data: { actions: [action] },
        });
        expect(inspection?.assertions.map(({ label }) => label)).to.deep.equal([
          'c2pa.actions.v2',
          'c2pa.hash.data',
        ]);
        expect(manifest.title).to.equal('A title, 題');
        expect(manifest.claim_generator_info[0]?.name).to.equal('svc');
        expect(manifest.assertions).to.deep.include.members([
          { label: 'c2pa.actions.v2', data: { actions: [action] }, created: true },
        ]);
      });

      it('is valid for an independent reader, and trusted by one that was given our root', async () => {
        const signed = await makeSigned(config, format);
        const unknown = await readIndependently(format, signed);
        expect([unknown.state, unknown.failures]).to.deep.equal(['Valid', ['signingCredential.untrusted']]);
        const known = await readIndependently(format, signed, config.rootPem);
        expect([known.state, known.failures]).to.deep.equal(['Trusted', []]);
      });

      it('grows by little, small or large, and its pixels stay as they were', async () => {
        for (const side of [16, format === 'png' ? 1200 : 2200]) {
          const picture = await makePicture(format, side);
          const signed = await makeSigner(config).sign(picture, pictureToSign(format));
          expect(signed.length - picture.length).to.be.within(1000, MAX_ADDED_BYTES);
          expect((await inspector.inspect(signed))?.valid, `${signed.length} bytes`).to.equal(true);
          expect((await readIndependently(format, signed)).state).to.equal('Valid');
          const [before, now] = await Promise.all(
            [picture, signed].map((bytes) => sharp(bytes).raw().toBuffer()),
          );
          expect(before?.equals(now ?? Buffer.alloc(0))).to.equal(true);
          if (side > 16) expect(picture.length).to.be.above(3.8 * 1024 * 1024);
        }
      }).timeout(60_000);

      it('with one byte changed is reported by both readers: pixels, claim, signature', async () => {
        const signed = await makeSigned(config, format);
        const place = placeOf(signed);
        const manifestEnd = place.start + place.length;
        const places: readonly (readonly [string, number, RegExp])[] = [
          ['pixels', manifestEnd + 200, /^assertion\.dataHash\.mismatch$/],
          ['actions', signed.indexOf('image-test'), /^assertion\.hashedURI\.mismatch$/],
          ['claim', signed.indexOf('xmp:iid:') + 12, /^claimSignature\.mismatch$/],
          ['signature', manifestEnd - 20, /^claimSignature\.mismatch$/],
        ];
        for (const [what, at, code] of places) {
          const changed = format === 'png' ? withChecksum(flipped(signed, at)) : flipped(signed, at);
          const inspection = await inspector.inspect(changed);
          expect(inspection?.valid, what).to.equal(false);
          expect(
            inspection?.problems.some((problem) => code.test(problem.code)),
            what,
          ).to.equal(true);
          expect(inspection?.signature.signed_by_this_service, what).to.equal(
            what === 'pixels' || what === 'actions',
          );
          const independent = await readIndependently(format, changed);
          expect(independent.state, what).to.equal('Invalid');
          expect(
            independent.failures.some((failure) => code.test(failure)),
            what,
          ).to.equal(true);
        }
      });

      it('has no manifest any more once it is encoded again', async () => {
        const again = await sharp(await makeSigned(config, format))
          .toFormat(format)
          .toBuffer();
        const inspection = await inspector.inspect(again);
        expect(inspection).to.deep.include({ has_manifest: false, valid: null, problems: [] });
        await readIndependently(format, again).then(
          () => expect.fail('it read a manifest'),
          (error) => expect(String(error)).to.match(/JumbfNotFound/),
        );
      });

      it('that carried a manifest carries only the new one', async () => {
        const first = await makeSigned(await makeIdentityConfig(), format);
        const picture = pictureToSign(format, { model: 'second-model' });
        const signed = await makeSigner(config).sign(first, picture);
        expect(findManifests(signed)?.manifests).to.have.length(1);
        const inspection = await inspector.inspect(signed);
        expect([inspection?.valid, inspection?.signature.signed_by_this_service]).to.deep.equal([true, true]);
        const { state, manifest } = await readIndependently(format, signed);
        expect(state).to.equal('Valid');
        expect(JSON.stringify(manifest)).to.include('second-model').and.not.include('image-test');
      });

      it('by another service is valid, and not signed by this one', async () => {
        const inspection = await inspector.inspect(await makeSigned(await makeIdentityConfig(), format));
        expect([inspection?.valid, inspection?.signature.signed_by_this_service]).to.deep.equal([
          true,
          false,
        ]);
      });
    });
  }

  it('is not made of bytes of another type', async () => {
    const signer = makeSigner(config);
    for (const bytes of [await makePicture('jpeg'), Buffer.from('hello'), Buffer.alloc(0)]) {
      await signer.sign(bytes, pictureToSign('png')).then(
        () => expect.fail('it was signed'),
        (error) => expect(error).to.be.an('error'),
      );
    }
  });

  it('may be signed with any of the keys that are taken, by certificates of several levels', async () => {
    for (const algorithm of ['ES256', 'ES384', 'Ed25519'] as const) {
      const given = await makeBoughtIdentity({ algorithm });
      const own = makeInspector(given);
      const signed = await makeSigned(given, 'png');
      const inspection = await own.inspect(signed);
      await own.close();
      expect(inspection?.problems).to.deep.equal([]);
      expect(inspection?.signature).to.deep.include({ valid: true, algorithm, signed_by_this_service: true });
      expect((await readIndependently('png', signed, given.rootPem)).state, algorithm).to.equal('Trusted');
    }
  });
});
