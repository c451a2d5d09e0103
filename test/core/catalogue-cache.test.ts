/** The catalogue in memory follows the database, also when that cannot be read for a while. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makeCatalogueCache } from '../../core/catalogue.ts';
import type { Pool } from '../../core/database.ts';
import { makeModel, withDatabase } from '../helpers/database.ts';

describe('the catalogue in memory', () => {
  const database = withDatabase();

  it('is read again until that succeeds', async () => {
    let failures = 0;
    let errors = 0;
    const pool = {
      query: async (text: string) => {
        if (failures > 0) {
          failures -= 1;
          throw new Error('no database');
        }
        return await database.pool.query(text);
      },
    } as unknown as Pool;
    const catalogue = await makeCatalogueCache(pool, () => {
      errors += 1;
    });
    const { modelId } = await makeModel(database.pool);
    failures = 2;
    const told: boolean[] = [];
    catalogue.onChange((next) => told.push(next.models.has(modelId)));
    await Promise.all([catalogue.refresh(), catalogue.refresh()]);
    expect(catalogue.current().models.has(modelId)).to.equal(true);
    expect([errors, told]).to.deep.equal([2, [true, true]]);

    failures = Number.POSITIVE_INFINITY;
    const refreshing = catalogue.refresh();
    catalogue.close();
    await refreshing;
  });
});
