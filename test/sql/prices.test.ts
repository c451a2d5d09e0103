/**
 * Price changes: an increase takes effect seven days after it was announced at the earliest, publishing one writes the
 * announcement, and a price row never changes.
 */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type pg from 'pg';
import {
  makeModel,
  type Queryable,
  selectOne,
  selectRows,
  withDatabase,
  withRollback,
} from '../helpers/database.ts';

interface Price {
  readonly id: number;
  readonly ap_in_per_1k: number | null;
  readonly ap_out_per_1k: number | null;
  readonly ap: number | null;
  readonly announced_at: Date;
  readonly effective_at: Date;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const NOTICE = 'increase_needs_seven_days_notice';

/** `effective` is SQL for the moment, or null: as soon as it may be. */
async function publish(
  db: Queryable,
  model: string,
  apIn: number,
  apOut: number,
  effective = 'null',
): Promise<Price> {
  return await selectOne<Price & pg.QueryResultRow>(
    db,
    `select * from app.publish_price($1, 'per_1k_tokens', $2, $3, null, null, null, ${effective}, 'test')`,
    [model, apIn, apOut],
  );
}

/** `done`, or the constraint that said no. */
async function attempt(work: Promise<unknown>): Promise<string | undefined> {
  return await work.then(
    () => 'done',
    (error: { constraint?: string }) => error.constraint,
  );
}

async function priceAt(db: Queryable, model: string, moment: string): Promise<string> {
  const row = await selectOne<{ price: string | null }>(
    db,
    `select ap_in_per_1k || '/' || ap_out_per_1k as price from app.price_in_force($1, '', '', ${moment})`,
    [model],
  );
  return row.price ?? 'none';
}

async function counts(db: Queryable): Promise<unknown> {
  return await selectOne(
    db,
    `select (select count(*) from app.prices) as prices, (select count(*) from app.announcements) as announcements,
            (select count(*) from app.audit_log where action = 'publish_price') as audit`,
  );
}

/** All prices are a month old, which nobody but the superuser can make them. */
async function age(db: Queryable): Promise<void> {
  await db.query(
    `set local session_replication_role = replica;
     update app.prices set announced_at = announced_at - interval '30 days', effective_at = effective_at - interval '30 days';
     set local session_replication_role = origin`,
  );
}

describe('a price', () => {
  const database = withDatabase();

  /** One transaction, hence one `now()`, in which a chat model has cost 25 in and 100 out for a month. */
  const inCatalogue = (work: (db: pg.PoolClient, model: string) => Promise<void>) => async () =>
    await withRollback(database.pool, async (db) => {
      const { modelId } = await makeModel(db, { apInPer1k: 25, apOutPer1k: 100 });
      await age(db);
      await work(db, modelId);
    });

  const CHANGES = [
    ['more for input', 26, 100, false],
    ['more for output', 25, 101, false],
    ['more for one, less for the other', 24, 101, false],
    ['less for both', 24, 99, true],
    ['less for one', 25, 99, true],
    ['nothing at all', 0, 0, true],
  ] as const;
  for (const [title, apIn, apOut, isAllowedAtOnce] of CHANGES) {
    it(`${title}: ${isAllowedAtOnce ? 'may take effect at once' : 'needs seven days'}`, async () => {
      for (const [effective, isNotice] of [
        ['now()', false],
        [`now() + interval '6 days 23:59:59.999'`, false],
        [`now() + interval '7 days'`, true],
        [`now() + interval '60 days'`, true],
      ] as const) {
        await inCatalogue(async (db, model) => {
          expect(await attempt(publish(db, model, apIn, apOut, effective)), effective).to.equal(
            isAllowedAtOnce || isNotice ? 'done' : NOTICE,
          );
        })();
      }
    });
  }

  it(
    'takes effect as soon as it may when nobody says when',
    inCatalogue(async (db, model) => {
      const lower = await publish(db, model, 25, 90);
      expect(lower.effective_at).to.deep.equal(lower.announced_at);
      expect(await priceAt(db, model, 'now()')).to.equal('25/90');
      const higher = await publish(db, model, 25, 91);
      expect(higher.effective_at.getTime() - higher.announced_at.getTime()).to.equal(7 * DAY_MS);
      expect(await priceAt(db, model, `now() + interval '6 days 23:59:59.999'`)).to.equal('25/90');
      expect(await priceAt(db, model, `now() + interval '7 days'`)).to.equal('25/91');
    }),
  );

  it(
    'is measured against the price that would be in force then',
    inCatalogue(async (db, model) => {
      await publish(db, model, 10, 10, `now() + interval '1 day'`);
      await db.query('savepoint announced');
      expect(await attempt(publish(db, model, 25, 100, `now() + interval '2 days'`))).to.equal(NOTICE);
      await db.query('rollback to announced');
      expect(await attempt(publish(db, model, 25, 100, `now() + interval '8 days'`))).to.equal('done');
    }),
  );

  it(
    'does not turn an announced price into an increase on short notice',
    inCatalogue(async (db, model) => {
      await publish(db, model, 20, 90, `now() + interval '2 days'`);
      expect(await attempt(publish(db, model, 10, 10, `now() + interval '1 day'`))).to.equal(NOTICE);
    }),
  );

  it(
    'cannot be announced in the past, nor take effect there',
    inCatalogue(async (db, model) => {
      await db.query('savepoint before');
      const insert = (apIn: number) =>
        db.query(
          `insert into app.prices (model_id, unit, ap_in_per_1k, ap_out_per_1k, announced_at, effective_at)
             values ($1, 'per_1k_tokens', $2, 100, now() - interval '8 days', now() - interval '1 day')`,
          [model, apIn],
        );
      expect(await attempt(insert(26))).to.equal(NOTICE);
      await db.query('rollback to before');
      await insert(24);
      const { count } = await selectOne(
        db,
        'select count(*) from app.prices where announced_at = now() and effective_at = now()',
      );
      expect(count).to.equal(1);
      expect(await priceAt(db, model, `now() - interval '1 hour'`)).to.equal('25/100');
    }),
  );

  it(
    'that is in force already writes nothing',
    inCatalogue(async (db, model) => {
      const before = await counts(db);
      const again = await publish(db, model, 25, 100);
      expect(await priceAt(db, model, 'now()')).to.equal('25/100');
      expect(again.ap_in_per_1k).to.equal(25);
      expect(await counts(db)).to.deep.equal(before);
      await publish(db, model, 25, 100, `now() + interval '3 days'`);
      expect(await counts(db)).to.deep.equal(before);
    }),
  );

  it(
    'that is announced already writes nothing: a catalogue may be imported again',
    inCatalogue(async (db, model) => {
      const first = await publish(db, model, 30, 120);
      const before = await counts(db);
      const again = await publish(db, model, 30, 120);
      expect(again.id).to.equal(first.id);
      expect(await counts(db)).to.deep.equal(before);
    }),
  );

  it(
    'that is the model’s first is no news; a change is, in both languages, and is audited',
    inCatalogue(async (db, model) => {
      expect(await counts(db)).to.deep.equal({ prices: 1, announcements: 0, audit: 1 });
      const price = await publish(db, model, 30, 90);
      expect(await counts(db)).to.deep.equal({ prices: 2, announcements: 1, audit: 2 });
      const news = await selectOne(db, 'select * from app.announcements');
      expect(news).to.deep.include({ kind: 'price', price_id: price.id });
      for (const field of ['title_en', 'title_ja', 'body_en', 'body_ja']) {
        expect(news[field], field).to.include(model);
      }
      for (const field of ['body_en', 'body_ja']) {
        expect(news[field], field).to.include('25 → 30').and.to.include('100 → 90');
        expect(news[field], field).to.include(price.effective_at.toISOString().slice(0, 10));
      }
      const audit = await selectOne(
        db,
        `select * from app.audit_log where action = 'publish_price' order by id desc limit 1`,
      );
      expect(audit).to.deep.include({ actor: 'test', target_type: 'model', target_id: model });
      expect(audit.before).to.include({ ap_in_per_1k: 25, ap_out_per_1k: 100 });
      expect(audit.after).to.include({ id: price.id, ap_in_per_1k: 30, ap_out_per_1k: 90 });
    }),
  );

  it('is each size’s and quality’s own', async () => {
    await withRollback(database.pool, async (db) => {
      await db.query(`insert into app.models (id, type) values ('image', 'image')`);
      const publishImage = (ap: number, size: string, quality: string) =>
        selectOne<Price & pg.QueryResultRow>(
          db,
          `select * from app.publish_price('image', 'per_image', null, null, $1, $2, $3, null, 'test')`,
          [ap, size, quality],
        );
      await publishImage(120, '1024x1024', 'low');
      await publishImage(1900, '1024x1024', 'high');
      await publishImage(200, '1536x1024', 'low');
      expect(await counts(db), 'three first prices, no news').to.deep.include({
        prices: 3,
        announcements: 0,
      });
      await age(db);
      await publishImage(100, '1024x1024', 'low');
      const raised = await publishImage(2000, '1024x1024', 'high');
      expect(raised.effective_at.getTime() - raised.announced_at.getTime()).to.equal(7 * DAY_MS);
      const rows = await selectRows(
        db,
        `select p.ap from (values ('1024x1024', 'low'), ('1024x1024', 'high'), ('1536x1024', 'low'), ('1536x1024', 'high'))
           v(size, quality), app.price_in_force('image', v.size, v.quality, now()) p`,
      );
      expect(rows.map((row) => row.ap)).to.deep.equal([100, 1900, 200, null]);
    });
  });

  it('published by several at once is written once', async () => {
    const { modelId } = await makeModel(database.pool, { apInPer1k: 25, apOutPer1k: 100 });
    const prices = await Promise.all(
      Array.from({ length: 8 }, () => publish(database.pool, modelId, 30, 100)),
    );
    expect(new Set(prices.map((price) => price.id)).size).to.equal(1);
    const { count } = await selectOne(
      database.pool,
      'select count(*) from app.announcements a join app.prices p on p.id = a.price_id where p.model_id = $1',
      [modelId],
    );
    expect(count).to.equal(1);
  });
});
