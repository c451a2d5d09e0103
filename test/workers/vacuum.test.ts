/** The dead rows of the queue and of the holds go before autovacuum comes by. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makeVacuum } from '../../workers/vacuum.ts';
import { selectOne, withDatabase } from '../helpers/database.ts';

const JOBS = 'graphile_worker._private_jobs';

describe('vacuum', () => {
  const database = withDatabase();

  /** Leaves that many dead rows in the table, and says so to the statistics. */
  async function die(table: string, rows: number): Promise<void> {
    const insert =
      table === JOBS
        ? `insert into ${JOBS} (task_id) select 0 from generate_series(1, $1)`
        : `insert into app.holds select gen_random_uuid(), gen_random_uuid(), 1, now() from generate_series(1, $1)`;
    const client = await database.pool.connect();
    await client.query(insert, [rows]);
    await client.query(`delete from ${table}`);
    await client.query('select pg_stat_force_next_flush()');
    client.release();
  }

  const figuresOf = (table: string) =>
    selectOne<{ dead: number; vacuums: number }>(
      database.pool,
      'select pg_stat_get_dead_tuples($1::regclass) as dead, pg_stat_get_vacuum_count($1::regclass) as vacuums',
      [table],
    );

  for (const table of [JOBS, 'app.holds']) {
    it(`clears ${table} once there is enough to clear, and leaves it alone until there is again`, async () => {
      const vacuum = makeVacuum(database.pool);
      await die(table, 1999);
      await vacuum();
      expect(await figuresOf(table)).to.deep.equal({ dead: 1999, vacuums: 0 });
      await die(table, 1);
      await vacuum();
      expect(await figuresOf(table)).to.deep.equal({ dead: 0, vacuums: 1 });
      await makeVacuum(database.pool)();
      expect((await figuresOf(table)).vacuums).to.equal(1);
    });
  }

  it('rests after its work, the longer the longer that took', async () => {
    const vacuum = makeVacuum(database.pool);
    const { vacuums } = await figuresOf(JOBS);
    await die(JOBS, 20_000);
    await vacuum();
    await die(JOBS, 2000);
    await vacuum();
    expect(await figuresOf(JOBS)).to.deep.equal({ dead: 2000, vacuums: vacuums + 1 });
  });

  it('waits for nobody who vacuums already', async () => {
    await die(JOBS, 2000);
    const client = await database.pool.connect();
    await client.query(`begin; lock table ${JOBS} in share update exclusive mode`);
    await makeVacuum(database.pool)();
    await client.query('rollback');
    client.release();
    expect((await figuresOf(JOBS)).dead).to.be.at.least(2000);
  });
});
