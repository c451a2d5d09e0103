import { expect } from 'chai';
import { describe, it } from 'mocha';
import { v7 } from 'uuid';
import { makeAccount, selectOne, selectRows } from '../helpers/database.ts';
import { lastAudit, makeChargedRequest, withAdmin } from './admin-client.ts';

describe('admin: assets, gallery, characters, old certificates', () => {
  const admin = withAdmin();

  /** A published picture. */
  async function makePublished(): Promise<{ assetId: string; requestId: string; accountId: string }> {
    const { accountId, requestId } = await makeChargedRequest(admin.database.pool, 5);
    const assetId = v7();
    await admin.database.pool.query(
      `insert into app.assets (id, account_id, request_id, kind, content_type, bytes, sha256, state)
         values ($1, $2, $3, 'image', 'image/png', 7, sha256('x'), 'stored')`,
      [assetId, accountId, requestId],
    );
    await admin.database.pool.query(
      `insert into app.gallery_items (asset_id, image_id, account_id, request_id, model_id, charge_request_id, published_at)
         values ($1, $2, $3, $2, 'm', $2, now())`,
      [assetId, requestId, accountId],
    );
    return { assetId, requestId, accountId };
  }

  it('shows assets and gallery items, by account and request', async () => {
    const { assetId, requestId, accountId } = await makePublished();
    const data = await admin.must(
      `query ($account: UUID!, $request: UUID!) {
        assets(condition: {requestId: $request}) { nodes { id kind bytes contentType account { id } } }
        galleryItems(condition: {accountId: $account}) { nodes { assetId imageId withdrawnAt asset { bytes } } } }`,
      { account: accountId, request: requestId },
    );
    expect(data).to.deep.equal({
      assets: {
        nodes: [
          { id: assetId, kind: 'image', bytes: 7, contentType: 'image/png', account: { id: accountId } },
        ],
      },
      galleryItems: { nodes: [{ assetId, imageId: requestId, withdrawnAt: null, asset: { bytes: 7 } }] },
    });
  });

  it('takes an asset down with a reason, out of the gallery too, once', async () => {
    const { assetId } = await makePublished();
    const takeDown = (reason: string) =>
      admin.ask<{ takeDownAsset: { asset: { deletedAt: string } } }>(
        `mutation ($reason: String!) { takeDownAsset(input: {asset: "${assetId}", reason: $reason}) { asset { deletedAt } } }`,
        { reason },
      );
    const blank = await takeDown(' ');
    expect(blank.errors[0]?.extensions.code).to.equal('invalid_parameter');
    const { data } = await takeDown('shows a person against their will');
    expect(data?.takeDownAsset.asset.deletedAt).to.be.a('string');
    const line = await lastAudit(admin.database.pool);
    expect(line).to.include({ action: 'take_down_asset', target_id: assetId });
    expect(line?.before).to.include({ deleted_at: null });
    expect(line?.after).to.include({ reason: 'shows a person against their will' });
    const { is_shown: isShown } = await selectOne<{ is_shown: boolean }>(
      admin.database.pool,
      'select withdrawn_at is null as is_shown from app.gallery_items where asset_id = $1',
      [assetId],
    );
    expect(isShown).to.equal(false);
    expect((await takeDown('again')).data).to.deep.equal(data);
    expect((await lastAudit(admin.database.pool))?.id).to.equal(line?.id);
    const { errors } = await admin.ask(
      `mutation { takeDownAsset(input: {asset: "${v7()}", reason: "x"}) { __typename } }`,
    );
    expect(errors[0]?.extensions.code).to.equal('not_found');
  });

  it('removes a character with a reason; its prompt is in no view', async () => {
    const accountId = await makeAccount(admin.database.pool);
    const id = v7();
    await admin.database.pool.query(
      `insert into app.characters (id, account_id, slug, name_ja, name_en, prompt, is_public)
         values ($1, $2, 'bear', 'くま', 'Bear', 'a private prompt', true)`,
      [id, accountId],
    );
    const found = await admin.must(
      '{ characterBySlug(slug: "bear") { id nameEn removedAt account { id } } }',
    );
    expect(found).to.deep.equal({
      characterBySlug: { id, nameEn: 'Bear', removedAt: null, account: { id: accountId } },
    });
    const removed = await admin.must<{ removeCharacter: { character: { removedAt: string } } }>(
      `mutation { removeCharacter(input: {character: "${id}", reason: "stolen"}) { character { removedAt } } }`,
    );
    expect(removed.removeCharacter.character.removedAt).to.be.a('string');
    const line = await lastAudit(admin.database.pool);
    expect(line?.after).to.include({ reason: 'stolen' });
    expect(JSON.stringify(line)).to.not.include('private prompt');
  });

  describe('importing certificates of before', () => {
    const importAll = (certificates: unknown) =>
      admin.ask<{ importLegacyCerts: { imported: number } }>(
        'mutation ($all: JSON!) { importLegacyCerts(input: {certificates: $all}) { imported } }',
        { all: certificates },
      );

    it('takes a list, overwrites what was there, and notes both', async () => {
      const one = {
        number: 41,
        title: 'One',
        holder_name: 'A',
        issued_on: '2018-01-01',
        details: { rank: 1 },
      };
      expect((await importAll([one, { number: 42 }])).data).to.deep.equal({
        importLegacyCerts: { imported: 2 },
      });
      expect((await importAll([{ ...one, status: 'revoked' }])).data).to.deep.equal({
        importLegacyCerts: { imported: 1 },
      });
      const line = await lastAudit(admin.database.pool);
      expect(line?.before).to.have.nested.property('certificates[0].status', 'issued');
      expect(line?.after).to.have.nested.property('certificates[0].status', 'revoked');
      expect(await admin.must('{ legacyCert(number: 41) { status title issuedOn details } }')).to.deep.equal({
        legacyCert: { status: 'revoked', title: 'One', issuedOn: '2018-01-01', details: { rank: 1 } },
      });
    });

    const REFUSED: readonly (readonly [string, unknown])[] = [
      ['what is no list', { number: 1 }],
      ['an empty list', []],
      ['what is no object', [1]],
      ['an unknown field', [{ number: 51, email: 'x' }]],
      ['one without a number', [{ title: 'x' }]],
      ['two of one number', [{ number: 51 }, { number: 51 }]],
      ['an unknown status', [{ number: 51, status: 'lost' }]],
      ['a number below one', [{ number: 0 }]],
      ['a date that is none', [{ number: 51, issued_on: 'soon' }]],
    ];
    for (const [what, certificates] of REFUSED) {
      it(`refuses ${what}, all of it`, async () => {
        const { errors } = await importAll(certificates);
        expect(errors[0]?.extensions.code).to.be.oneOf(['invalid_parameter', 'refused']);
        expect(
          await selectRows(admin.database.pool, 'select from app.legacy_certs where number = 51'),
        ).to.have.length(0);
      });
    }
  });
});
