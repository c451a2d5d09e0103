/** Manifests of other software, of kinds that this service does not write: judged as far as they can be, and no further. */
import { JPEG, PNG } from '@trustnxt/c2pa-ts/asset';
import { ActionAssertion, ActionType, AssertionLabels, DigitalSourceType } from '@trustnxt/c2pa-ts/manifest';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import type { Inspection } from '../../../core/provenance/inspection.ts';
import { type Inspector, makeInspector } from '../../../core/provenance/inspector.ts';
import { asResponse } from '../../../core/provenance/timestamps.ts';
import { makeIdentityConfig, makePicture, readIndependently } from '../../helpers/c2pa.ts';
import { type Draft, newDraft, sealed } from '../../helpers/c2pa-draft.ts';

describe('an inspection of another service’s manifest', () => {
  let inspector: Inspector;
  before(async () => {
    inspector = makeInspector(await makeIdentityConfig());
  });
  after(() => inspector.close());

  const inspect = async (bytes: Buffer): Promise<Inspection> => {
    const inspection = await inspector.inspect(bytes);
    if (inspection === undefined) throw new Error('no picture');
    return inspection;
  };
  const codesOf = ({ problems }: Inspection) => problems.map(({ code }) => code);
  const draftWith = async (...actions: readonly ActionType[]): Promise<Draft> => {
    const draft = await newDraft(await makeIdentityConfig());
    const assertion = new ActionAssertion();
    assertion.actions = actions.map((action) => ({
      action,
      digitalSourceType: DigitalSourceType.DigitalCapture,
    }));
    draft.manifest.addAssertion(assertion);
    return draft;
  };

  it('does not take a binding that it cannot check for one that holds', async () => {
    const draft = await newDraft(await makeIdentityConfig());
    const inspection = await inspect(
      await sealed(draft, new JPEG(await makePicture('jpeg')), AssertionLabels.boxHash),
    );
    expect(inspection.signature.valid).to.equal(true);
    expect(inspection).to.deep.include({ has_manifest: true, valid: null, hashes: { valid: null } });
    expect(codesOf(inspection)).to.deep.equal(['hash_binding.unsupported']);
  });

  it('reads one with a timestamp of the present kind, and takes one that does not count for none', async () => {
    const draft = await draftWith(ActionType.C2paCreated);
    const { signature } = draft.manifest;
    if (signature === undefined) throw new Error('a new manifest has a signature');
    const write = signature.signatureData.writeJUMBFData.bind(signature.signatureData);
    signature.signatureData.writeJUMBFData = () => {
      const written = write();
      written[1].sigTst2 = { tstTokens: [{ val: new Uint8Array(EMPTY_TOKEN) }] };
      return written;
    };
    const signed = await sealed(draft, new PNG(await makePicture('png')));
    expect((await readIndependently('png', signed)).state).to.equal('Valid');
    const inspection = await inspect(signed);
    expect(codesOf(inspection)).to.deep.equal(['timeStamp.malformed']);
    expect(inspection).to.deep.include({ valid: true, hashes: { valid: true } });
    expect(inspection.signature).to.deep.include({ valid: true, signed_by_this_service: false });
  });

  it('does not judge actions by rules that are known here in part', async () => {
    const draft = await draftWith(ActionType.C2paOpened);
    const inspection = await inspect(await sealed(draft, new PNG(await makePicture('png'))));
    expect(codesOf(inspection)).to.deep.equal(['assertion.action.ingredientMismatch']);
    expect(inspection).to.deep.include({ valid: null, hashes: { valid: true } });
    expect(inspection.signature.valid).to.equal(true);
  });
});

/** ContentInfo of a signature without anything in it. */
const EMPTY_TOKEN = Buffer.from('300f06092a864886f70d010702a0023000', 'hex');

describe('a timestamp token', () => {
  const GRANTED = '3003020100';

  it('becomes a response around the same bytes', () => {
    const response = Buffer.from(asResponse(EMPTY_TOKEN)).toString('hex');
    expect(response).to.equal(`30820016${GRANTED}${EMPTY_TOKEN.toString('hex')}`);
    const long = Buffer.concat([Buffer.from('3082271006', 'hex'), Buffer.alloc(9999)]);
    expect(Buffer.from(asResponse(long)).toString('hex')).to.equal(
      `30822719${GRANTED}${long.toString('hex')}`,
    );
  });

  it('stays as it is where it is a response already, or nothing of the kind', () => {
    for (const bytes of [asResponse(EMPTY_TOKEN), Buffer.alloc(0), Buffer.from([0x30]), Buffer.from('hello')])
      expect(asResponse(bytes)).to.equal(bytes);
  });
});
