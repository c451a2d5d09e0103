/** Pictures of which some have ended: deleted, taken down, expired, or lost; what is left stays their owner's to see and to delete. */
import { expect } from 'chai';
import { before, beforeEach, describe, it } from 'mocha';
import { type AssetName, assetKey } from '../../core/assets/keys.ts';
import { selectRows } from '../helpers/database.ts';
import { type MadePictures, makeGalleryPrice, makePictures } from '../helpers/gallery.ts';
import { IMAGE_MODEL, makeImageModel } from '../helpers/image-models.ts';
import { type TestCaller, withTestService } from '../helpers/service.ts';

describe('pictures that have ended', () => {
  const service = withTestService();
  let caller: TestCaller;

  before('a model of the sandbox', async () => {
    await makeImageModel(service, { id: IMAGE_MODEL, provider: 'sandbox' });
    await makeGalleryPrice(service);
  });
  beforeEach(async () => {
    caller = await service.makeCaller({ ratePerMinute: 1000 });
  });

  const own = (path: string) => service.get(`/v1/images/${path}`, { secret: caller.secret });
  const post = (path: string) => service.post(`/v1/images/${path}`, { secret: caller.secret });
  const remove = (id: string) => service.call('DELETE', `/v1/images/${id}`, { secret: caller.secret });
  const takeDown = (id = '') => service.pool.query('select app.delete_assets(null, array[$1::uuid])', [id]);
  const expire = (id = '') =>
    service.pool.query(
      `update app.assets set expires_at = now() - interval '1 second', sweep_at = now() where id = $1`,
      [id],
    );

  const ENDS: readonly (readonly [string, (id?: string) => Promise<unknown>, string, string])[] = [
    ['taken down', takeDown, 'deleted', 'gone'],
    ['past its retention', expire, 'expired', 'expired'],
  ];
  for (const [what, end, status, code] of ENDS) {
    describe(`one of two ${what}`, () => {
      let made: MadePictures;
      let [first, second]: readonly string[] = [];
      beforeEach(async () => {
        made = await makePictures(service, caller.secret, { n: 2 });
        [first, second] = made.candidates;
        expect((await post(`${second}/publish`)).status).to.equal(200);
        await end(first);
      });

      it('is told of where the generation is shown, listed and collected, beside the other', async () => {
        const listed = (await own('')).json.data.find(({ id }: { id: string }) => id === made.id);
        for (const shown of [
          (await own(made.id)).json,
          listed,
          (await own(`status/${made.id}`)).json,
          (await own(`status/${made.id}?response_format=url`)).json,
        ]) {
          expect(shown.data[0]).to.deep.equal({ candidate_id: first, status });
          expect(shown.data[1].candidate_id).to.equal(second);
          expect(shown.data[1].url).to.match(new RegExp(`/v1/images/file/${second}$`));
        }
        expect((await own(`file/${made.id}`)).headers.get('content-disposition')).to.include(second);
        const refused = await own(`file/${first}`);
        expect([refused.status, refused.json.error.code]).to.deep.equal([410, code]);
      });

      it('does not keep the other from being deleted, which takes it out of the gallery', async () => {
        expect((await remove(made.id)).json).to.deep.equal({
          id: made.id,
          object: 'image.deleted',
          deleted: true,
        });
        expect((await service.get(`/v1/images/gallery/${second}`)).status).to.equal(410);
        for (const id of [made.id, ...made.candidates]) expect((await remove(id)).status, id).to.equal(410);
        expect((await own(made.id)).status).to.equal(410);
        expect((await own('')).json.data).to.deep.equal([]);
      });
    });
  }

  it('may be deleted one by one, by the ids of the candidates', async () => {
    const made = await makePictures(service, caller.secret, { n: 2 });
    const [first, second] = made.candidates;
    expect((await remove(second ?? '')).json).to.deep.equal({
      id: second,
      object: 'image.deleted',
      deleted: true,
    });
    expect((await remove(second ?? '')).status).to.equal(410);
    expect((await own(made.id)).json.data.map(({ status }: { status?: string }) => status)).to.deep.equal([
      undefined,
      'deleted',
    ]);
    const other = await service.makeCaller();
    const tried = await service.call('DELETE', `/v1/images/${first}`, { secret: other.secret });
    expect(tried.status).to.equal(404);
    expect((await remove(first ?? '')).status).to.equal(200);
    expect((await own(made.id)).status).to.equal(410);
  });

  it('are 410 in every form once the store has lost the file', async () => {
    const { id, candidates } = await makePictures(service, caller.secret);
    const [asset] = await selectRows<AssetName>(
      service.pool,
      'select id, kind, content_type as "contentType" from app.assets where id = $1',
      [candidates[0]],
    );
    await service.store.delete([assetKey(asset as AssetName)]);
    for (const path of [`file/${id}`, `candidate/${id}`, `status/${id}`]) {
      const { status, json } = await own(path);
      expect([status, json.error.code], path).to.deep.equal([410, 'gone']);
    }
    expect(service.takeErrors()).to.have.length(3);
  });

  it('previews read at most two files at a time', async () => {
    const { id } = await makePictures(service, caller.secret);
    const read = service.store.read.bind(service.store);
    let open = 0;
    let most = 0;
    service.store.read = async (...args) => {
      open += 1;
      most = Math.max(most, open);
      return await read(...args).finally(() => {
        open -= 1;
      });
    };
    try {
      const answers = await Promise.all(Array.from({ length: 12 }, () => own(`candidate/${id}`)));
      expect(answers.every(({ status }) => status === 200)).to.equal(true);
    } finally {
      service.store.read = read;
    }
    expect(most).to.be.within(1, 2);
  });

  it('are 404 in the gallery where their owner took them back before they were deleted', async () => {
    const { id } = await makePictures(service, caller.secret);
    await post(`${id}/publish`);
    await service.call('DELETE', `/v1/images/${id}/publish`, { secret: caller.secret });
    await remove(id);
    expect((await service.get(`/v1/images/gallery/${id}`)).status).to.equal(404);
  });

  it('are paged over like others', async () => {
    const all: MadePictures[] = [];
    for (let index = 0; index < 3; index += 1)
      all.unshift(await makePictures(service, caller.secret, { n: 2 }));
    await takeDown(all[1]?.candidates[0]);
    const ids: string[] = [];
    for (let cursor = ''; ; ) {
      const { json } = await own(`?limit=1&cursor=${cursor}`);
      ids.push(json.data[0].id);
      if (!json.has_more) break;
      cursor = json.next_cursor;
    }
    expect(ids).to.deep.equal(all.map(({ id }) => id));
  });
});
