/** Paid operations whose answer from the database is lost: what is charged is answered, what is refused was not charged. */
import { expect } from 'chai';
import { afterEach, before, beforeEach, describe, it } from 'mocha';
import pg from 'pg';
import { GALLERY_PRICE_AP, makeGalleryPrice, makePictures, PICTURE_AP } from '../helpers/gallery.ts';
import { IMAGE_MODEL, makeImageModel } from '../helpers/image-models.ts';
import { type TestCaller, withTestService } from '../helpers/service.ts';

const CHARGED = [PICTURE_AP, GALLERY_PRICE_AP];
const LOOK = 'find_committed_requests';
const READ = 'find_request';

type Query = (...values: unknown[]) => Promise<unknown>;
type Loss = 'before' | 'after';
const prototype = pg.Pool.prototype as unknown as { query: Query };
const { query } = prototype;

/** The connection breaks at the first calls of these statements: before PostgreSQL has them, or with its answer. */
function breakAt(losses: Readonly<Record<string, Loss>>): { left: () => string[] } {
  const left = new Map(Object.entries(losses));
  prototype.query = async function (...values) {
    const { name = '' } = values[0] as { name?: string };
    const loss = left.get(name);
    left.delete(name);
    if (loss !== 'before') {
      const answer = await query.apply(this, values);
      if (loss === undefined) return answer;
    }
    throw new Error('Connection terminated unexpectedly');
  };
  return { left: () => [...left.keys()] };
}

describe('a paid operation whose answer is lost', () => {
  const service = withTestService();
  let caller: TestCaller;
  let id: string;

  before('models', async () => {
    await makeImageModel(service, { id: IMAGE_MODEL, provider: 'sandbox' });
    await makeGalleryPrice(service);
  });
  beforeEach(async () => {
    caller = await service.makeCaller({ ratePerMinute: 1000 });
    ({ id } = await makePictures(service, caller.secret));
  });
  afterEach(() => {
    prototype.query = query;
  });

  for (const path of ['certify', 'publish']) {
    const statement = `${path}_image`;
    const losses: Record<string, Record<string, Loss>> = {
      'after it was charged': { [statement]: 'after' },
      'after it was charged, and the books do not answer at once': { [statement]: 'after', [LOOK]: 'before' },
      'before it was charged': { [statement]: 'before' },
      'when it is read from the books': { [READ]: 'before' },
    };
    for (const [when, lost] of Object.entries(losses)) {
      it(`${path}: ${when}, is answered and charged once`, async () => {
        const { left } = breakAt(lost);
        const answer = await service.post(`/v1/images/${id}/${path}`, { secret: caller.secret });
        expect(left()).to.deep.equal([]);
        expect(answer.status).to.equal(200);
        expect(answer.json.ap_cost).to.equal(GALLERY_PRICE_AP);
        expect(answer.headers.get('x-svc-ap-cost')).to.equal(String(GALLERY_PRICE_AP));
        expect(await service.chargesOf(caller.accountId)).to.deep.equal(CHARGED);
      });
    }

    it(`${path}: while the call that was lost is still at work, is answered and charged once`, async () => {
      const lock = await service.pool.connect();
      await lock.query('begin');
      await lock.query('select from app.balances where account_id = $1 for update', [caller.accountId]);
      const looked = Promise.withResolvers<void>();
      let isLost = false;
      prototype.query = function (...values) {
        const { name } = values[0] as { name?: string };
        if (name === LOOK) looked.resolve();
        const answer = query.apply(this, values);
        if (name !== statement || isLost) return answer;
        isLost = true;
        answer.catch(() => {});
        return Promise.reject(new Error('Connection terminated unexpectedly'));
      };
      const answered = service.post(`/v1/images/${id}/${path}`, { secret: caller.secret });
      await looked.promise;
      await lock.query('rollback');
      lock.release();
      const answer = await answered;
      expect(answer.status).to.equal(200);
      expect(answer.json.ap_cost).to.equal(GALLERY_PRICE_AP);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal(CHARGED);
    });
  }
});
