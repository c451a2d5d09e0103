/** Price changes through a catalogue file: increases are announced seven days ahead, whatever the file says. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type { PoolClient } from 'pg';
import { selectOne, selectRows, withDatabase, withRollback } from '../../helpers/database.ts';
import {
  count,
  DAY_MS,
  FULL,
  inDays,
  letDaysPass,
  load,
  pricesIn,
  refusalOf,
  speech,
} from './catalogue-database.ts';

describe('the seven-day rule of price increases', () => {
  const database = withDatabase();

  const start = async (db: PoolClient, pricing = '{ap: 200}'): Promise<void> => {
    await load(db, FULL);
    await load(db, speech(pricing));
    await letDaysPass(db, 30);
  };

  it('an increase is announced for seven days later, and told', async () => {
    await withRollback(database.pool, async (db) => {
      await start(db);
      const { priceChanges } = await load(db, speech('{ap: 210}'));
      expect(await pricesIn(db)).to.deep.equal([
        { ap: 200, days: -30 },
        { ap: 210, days: 7 },
      ]);
      const { now } = await selectOne<{ now: Date }>(db, 'select now()');
      expect(priceChanges).to.deep.equal([
        {
          model: 'speech-main',
          size: '',
          quality: '',
          before: { ap: 200 },
          after: { ap: 210 },
          effectiveAt: new Date(now.getTime() + 7 * DAY_MS),
        },
      ]);
      expect(await selectRows(db, 'select kind, body_en from app.announcements')).to.have.lengthOf(1);
    });
  });

  it('the same file on a later day announces it no second time', async () => {
    await withRollback(database.pool, async (db) => {
      await start(db);
      await load(db, speech('{ap: 210}'));
      await letDaysPass(db, 3);
      expect((await load(db, speech('{ap: 210}'))).priceChanges).to.deep.equal([]);
      await letDaysPass(db, 6);
      expect((await load(db, speech('{ap: 210}'))).priceChanges).to.deep.equal([]);
      expect(await count(db, 'announcements')).to.equal(1);
    });
  });

  it('a decrease is in force at once', async () => {
    await withRollback(database.pool, async (db) => {
      await start(db);
      await load(db, speech('{ap: 190}'));
      expect(await pricesIn(db)).to.deep.equal([
        { ap: 200, days: -30 },
        { ap: 190, days: 0 },
      ]);
    });
  });

  it('a rise of one component is an increase whatever the other does', async () => {
    await withRollback(database.pool, async (db) => {
      await start(db);
      const { priceChanges } = await load(
        db,
        FULL.replace('{ap_in_per_1k: 25, ap_out_per_1k: 100}', '{ap_in_per_1k: 26, ap_out_per_1k: 1}'),
      );
      expect(priceChanges.map(({ model, after }) => [model, after])).to.deep.equal([
        ['chat-large', { ap_in_per_1k: 26, ap_out_per_1k: 1 }],
      ]);
      expect(priceChanges[0]?.effectiveAt.getTime()).to.be.above(Date.now() + 6.9 * DAY_MS);
    });
  });

  it('a later date in the file is kept, to the microsecond', async () => {
    await withRollback(database.pool, async (db) => {
      await start(db);
      await load(db, speech('[{ap: 200}, {ap: 300, effective_at: "2100-01-01T09:00:00.000001+09:00"}]'));
      expect(
        await selectOne(
          db,
          `select effective_at = '2100-01-01T00:00:00.000001Z' as same from app.prices where ap = 300`,
        ),
      ).to.deep.equal({ same: true });
    });
  });

  it('an earlier date is refused with its place, every one of them', async () => {
    await withRollback(database.pool, async (db) => {
      await start(db);
      const soon = inDays(6.9);
      const text = FULL.replace('{ap: 200}', `\n      ap: 201\n      effective_at: ${soon}`).replace(
        'ap: 120}',
        `ap: 121, effective_at: ${inDays(-1)}}`,
      );
      const problems = await refusalOf(load(db, text));
      expect(problems).to.have.lengthOf(2);
      expect(problems[0]).to.match(
        /^c\.yaml:20:21: a price increase needs seven days' notice: effective_at must be \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ or later$/,
      );
      expect(problems[1]).to.match(/^c\.yaml:25:64: a price increase needs seven days' notice/);
    });
  });

  it('a dated price imports again unchanged, before its day and after', async () => {
    await withRollback(database.pool, async (db) => {
      await start(db);
      // days pass by moving what is stored, so the file's date is moved along
      await load(db, speech(`[{ap: 200}, {ap: 300, effective_at: "${inDays(10)}"}]`));
      await db.query('savepoint before');
      await letDaysPass(db, 11);
      await load(db, speech(`[{ap: 200}, {ap: 300, effective_at: "${inDays(-1)}"}]`));
      expect((await pricesIn(db)).map(({ ap }) => ap)).to.deep.equal([200, 300]);
      await load(
        db,
        speech(
          `[{ap: 200}, {ap: 250, effective_at: "${inDays(-2)}"}, {ap: 300, effective_at: "${inDays(-1)}"}]`,
        ),
      );
      expect((await pricesIn(db)).map(({ ap }) => ap)).to.deep.equal([200, 300]);
    });
  });

  it('an announced price is never changed: another for that moment is refused with its place', async () => {
    await withRollback(database.pool, async (db) => {
      await start(db);
      await load(db, speech('[{ap: 200}, {ap: 300, effective_at: 2100-01-01}]'));
      expect(
        await refusalOf(load(db, speech('[{ap: 200}, {ap: 290, effective_at: 2100-01-01}]'))),
      ).to.deep.equal([
        'c.yaml:6:50: another price is announced for this very moment, and announced prices never change',
      ]);
    });
  });

  it('cannot be got around with a decrease before an announced one', async () => {
    await withRollback(database.pool, async (db) => {
      await start(db);
      await load(db, speech(`[{ap: 200}, {ap: 150, effective_at: "${inDays(1)}"}]`));
      const problems = await refusalOf(load(db, speech('{ap: 100}')));
      expect(problems).to.have.lengthOf(1);
      expect(problems[0]).to.match(
        /^c\.yaml:6:14: the price announced for \S+ would become an increase without seven days' notice$/,
      );
    });
  });

  it('a size that had no price before gets its first at once', async () => {
    await withRollback(database.pool, async (db) => {
      await start(db);
      const text = FULL.replace('pricing:\n', 'pricing:\n      - {size: 512x512, quality: low, ap: 9000}\n');
      expect((await load(db, text)).priceChanges).to.deep.equal([]);
      expect(
        await selectOne(db, `select effective_at = now() as is_now from app.prices where ap = 9000`),
      ).to.deep.equal({ is_now: true });
    });
  });
});
