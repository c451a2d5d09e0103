/**
 * Partitions by the time in a request's id: months of requests, days of results. They are made ahead, results are dropped a
 * day after their day, and nothing that happens to the clock stops the maintenance.
 */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type pg from 'pg';
import { v7 } from 'uuid';
import {
  makeAccount,
  makeSubmission,
  type Queryable,
  selectOne,
  selectRows,
  submit,
  withDatabase,
  withRollback,
} from '../helpers/database.ts';

const HOUR_MS = 60 * 60 * 1000;

async function partitionsOf(db: Queryable, parent: string): Promise<string[]> {
  const rows = await selectRows<{ name: string }>(
    db,
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where i.inhparent = $1::regclass order by c.relname`,
    [`app.${parent}`],
  );
  return rows.map((row) => row.name.replace(`${parent}_`, ''));
}

const maintain = async (db: Queryable, now: string): Promise<unknown> =>
  await db.query('select app.maintain_partitions($1)', [now]);

const idAt = (moment: string): string => v7({ msecs: Date.parse(moment) });

/** Writes a request of this id; gives the partition it fell into. */
async function placeOfRequest(db: Queryable, id: string): Promise<string> {
  const row = await selectOne<{ name: string }>(
    db,
    `insert into app.requests (id, account_id, key_id, area, task, model_id, price_id, hold_ap, deadline_at)
       values ($1, $1, $1, 'llm', 'chat/completions', 'm', 1, 0, now()) returning tableoid::regclass::text as name`,
    [id],
  );
  return row.name.replace('app.requests_', '');
}

async function placeOfResult(db: Queryable, id: string): Promise<string> {
  const row = await selectOne<{ name: string }>(
    db,
    `insert into app.request_results values ($1, 'json', '{}') returning tableoid::regclass::text as name`,
    [id],
  );
  return row.name.replace('app.request_results_', '');
}

describe('maintain_partitions', () => {
  const database = withDatabase();
  const alone = (work: (db: pg.PoolClient) => Promise<void>) => async () =>
    await withRollback(database.pool, work);

  it('was run by the migration: a new request falls into a month, its result into a day', async () => {
    const today = new Date().toISOString().slice(0, 10).replaceAll('-', '_');
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const submission = makeSubmission(accountId);
    await submit(database.pool, [submission]);
    const row = await selectOne<{ name: string }>(
      database.pool,
      'select tableoid::regclass::text as name from app.requests where id = $1',
      [submission.id],
    );
    expect(row.name).to.equal(`app.requests_${today.slice(0, 7)}`);
    expect(await placeOfResult(database.pool, submission.id)).to.equal(today);
  });

  it(
    'makes this month and the next two, today and the next three days, over the end of a year',
    alone(async (db) => {
      const [months, days] = [await partitionsOf(db, 'requests'), await partitionsOf(db, 'request_results')];
      await maintain(db, '2040-12-30T23:59:59.999Z');
      const isNew = (before: readonly string[]) => (name: string) => !before.includes(name);
      expect((await partitionsOf(db, 'requests')).filter(isNew(months))).to.deep.equal([
        '2040_12',
        '2041_01',
        '2041_02',
      ]);
      expect((await partitionsOf(db, 'request_results')).filter(isNew(days))).to.deep.equal([
        '2040_12_30',
        '2040_12_31',
        '2041_01_01',
        '2041_01_02',
      ]);
    }),
  );

  it(
    'changes nothing when run again',
    alone(async (db) => {
      await maintain(db, '2040-12-30T12:00:00Z');
      const before = [await partitionsOf(db, 'requests'), await partitionsOf(db, 'request_results')];
      await maintain(db, '2040-12-30T12:00:00Z');
      expect([await partitionsOf(db, 'requests'), await partitionsOf(db, 'request_results')]).to.deep.equal(
        before,
      );
    }),
  );

  it('makes the same partitions in every time zone, on the days when clocks change too', async () => {
    for (const now of ['2040-03-10T03:00:00Z', '2040-11-03T03:00:00Z']) {
      const bounds = new Set<string>();
      for (const zone of ['UTC', 'Asia/Tokyo', 'America/New_York', 'Pacific/Kiritimati']) {
        await alone(async (db) => {
          await db.query(`set local timezone = '${zone}'`);
          await maintain(db, now);
          const rows = await selectRows<{ bound: string }>(
            db,
            `select relname || ' ' || pg_get_expr(relpartbound, oid) as bound from pg_class
               where relnamespace = 'app'::regnamespace and relname ~ '_204[01]_' and relkind = 'r' order by 1`,
          );
          expect(rows).to.have.length(3 + 4);
          bounds.add(rows.map((row) => row.bound).join('\n'));
        })();
      }
      expect(bounds.size, now).to.equal(1);
    }
  });

  it(
    'puts ids on both sides of midnight into their own partitions, and others into the default one',
    alone(async (db) => {
      await maintain(db, '2040-12-30T12:00:00Z');
      for (const [moment, month, day] of [
        ['2040-11-30T23:59:59.999Z', 'default', 'default'],
        ['2040-12-01T00:00:00.000Z', '2040_12', 'default'],
        ['2040-12-30T00:00:00.000Z', '2040_12', '2040_12_30'],
        ['2040-12-31T23:59:59.999Z', '2040_12', '2040_12_31'],
        ['2041-01-01T00:00:00.000Z', '2041_01', '2041_01_01'],
        ['2041-01-02T23:59:59.999Z', '2041_01', '2041_01_02'],
        ['2041-01-03T00:00:00.000Z', '2041_01', 'default'],
        ['2041-02-28T23:59:59.999Z', '2041_02', 'default'],
        ['2041-03-01T00:00:00.000Z', 'default', 'default'],
      ] as const) {
        for (const id of [idAt(moment), idAt(moment)]) {
          expect(await placeOfRequest(db, id), moment).to.equal(month);
          expect(await placeOfResult(db, id), moment).to.equal(day);
        }
      }
    }),
  );

  it(
    'drops the results of a day when its last is 24 hours old, not before, and keeps every request',
    alone(async (db) => {
      await maintain(db, '2040-12-30T12:00:00Z');
      const ids = ['2040-12-30T00:00:00Z', '2040-12-30T23:59:59.999Z', '2040-12-31T00:00:00Z'].map(idAt);
      for (const id of ids) {
        await placeOfRequest(db, id);
        await placeOfResult(db, id);
      }
      const kept = async () => {
        const rows = await selectRows<{ id: string }>(
          db,
          'select request_id as id from app.request_results where request_id = any ($1)',
          [ids],
        );
        return rows.map((row) => ids.indexOf(row.id)).sort();
      };
      await maintain(db, '2041-01-01T00:00:00Z');
      expect(await kept()).to.deep.equal([0, 1, 2]);
      await maintain(db, '2041-01-01T00:00:00.001Z');
      expect(await kept()).to.deep.equal([2]);
      expect(await partitionsOf(db, 'request_results')).to.not.include('2040_12_30');
      const { count } = await selectOne(db, 'select count(*) from app.requests where id = any ($1)', [ids]);
      expect(count).to.equal(3);
    }),
  );

  it(
    'deletes results of the default partition after 24 hours',
    alone(async (db) => {
      const now = Date.parse('2040-12-30T12:00:00Z');
      const [old, young] = [now - 25 * HOUR_MS, now - 23 * HOUR_MS].map((msecs) => v7({ msecs }));
      for (const id of [old, young]) expect(await placeOfResult(db, id ?? '')).to.equal('default');
      await maintain(db, new Date(now).toISOString());
      const rows = await selectRows(
        db,
        'select request_id from app.request_results where request_id = any ($1)',
        [[old, young]],
      );
      expect(rows).to.deep.equal([{ request_id: young }]);
    }),
  );

  it(
    'takes over rows that came before their partition: a wrong clock, or maintenance that stood still',
    alone(async (db) => {
      const ids = ['2040-12-30T01:00:00Z', '2040-12-31T01:00:00Z', '2041-01-05T01:00:00Z'].map(idAt);
      for (const id of ids) {
        expect(await placeOfRequest(db, id)).to.equal('default');
        expect(await placeOfResult(db, id)).to.equal('default');
      }
      await maintain(db, '2040-12-30T12:00:00Z');
      const places = async (table: string, column: string) => {
        const rows = await selectRows<{ name: string }>(
          db,
          `select tableoid::regclass::text as name from app.${table} where ${column} = any ($1) order by ${column}`,
          [ids],
        );
        return rows.map((row) => row.name.replace(`app.${table}_`, ''));
      };
      expect(await places('requests', 'id')).to.deep.equal(['2040_12', '2040_12', '2041_01']);
      expect(await places('request_results', 'request_id')).to.deep.equal([
        '2040_12_30',
        '2040_12_31',
        'default',
      ]);
    }),
  );

  it('gives up within two seconds rather than make every request wait behind a long reader', async () => {
    const [reader, maintainer] = [await database.pool.connect(), await database.pool.connect()];
    try {
      await reader.query('begin');
      await reader.query('select count(*) from app.requests');
      await maintainer.query('begin');
      const begun = performance.now();
      const code = await maintain(maintainer, '2050-01-01T00:00:00Z').then(
        () => 'done',
        (error: { code?: string }) => error.code,
      );
      expect(code).to.equal('55P03'); // lock_not_available: run it again later
      expect(performance.now() - begun).to.be.below(2000);
    } finally {
      for (const client of [reader, maintainer]) {
        await client.query('rollback');
        client.release();
      }
    }
  });

  it('runs while another runs', async () => {
    await Promise.all(Array.from({ length: 4 }, () => maintain(database.pool, '2040-06-15T12:00:00Z')));
    expect(await partitionsOf(database.pool, 'requests')).to.include.members([
      '2040_06',
      '2040_07',
      '2040_08',
    ]);
  });
});

describe('uuid_floor', () => {
  const database = withDatabase();

  it('lies between the ids of the millisecond before and those of its own', async () => {
    for (const moment of [
      '1970-01-01T00:00:00.001Z',
      '2026-03-01T00:00:00.000Z',
      '2099-12-31T23:59:59.999Z',
    ]) {
      const { id } = await selectOne<{ id: string }>(database.pool, 'select app.uuid_floor($1) as id', [
        moment,
      ]);
      const msecs = Date.parse(moment);
      expect(id > v7({ msecs: msecs - 1, random: new Uint8Array(16).fill(255), seq: 0xffffffff })).to.equal(
        true,
      );
      expect(id < v7({ msecs, random: new Uint8Array(16), seq: 0 })).to.equal(true);
    }
  });
});

describe('purge_expired', () => {
  const database = withDatabase();

  it('removes idempotency keys of more than 24 hours, as many as it may, and old counters', async () => {
    const accountId = await makeAccount(database.pool);
    await database.pool.query(
      `insert into app.idempotency_keys (account_id, key, body_hash, request_id, created_at)
         select $1, 'key ' || n, 'x', $1, now() - make_interval(hours => n) from generate_series(20, 29) n`,
      [accountId],
    );
    await database.pool.query(
      `insert into app.cap_usage (subject_id, scope, period_start)
         values ($1, 'key:day', now() - interval '63 days'), ($1, 'key:day', now() - interval '61 days')`,
      [accountId],
    );
    const purge = async (limit: number) =>
      (await selectOne<{ rows: number }>(database.pool, 'select app.purge_expired($1) as rows', [limit]))
        .rows;
    expect([await purge(3), await purge(3), await purge(3)]).to.deep.equal([3, 3, 0]);
    const { keys, counters } = await selectOne(
      database.pool,
      `select (select count(*) from app.idempotency_keys) as keys, (select count(*) from app.cap_usage) as counters`,
    );
    expect({ keys, counters }).to.deep.equal({ keys: 4, counters: 1 });
  });
});
