/**
 * sql/schema.sql is what the migrations and function files make of an empty database.
 */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { dumpSchema, SCHEMA_FILE } from '../../bin/dump-schema.ts';
import { migrate } from '../../bin/migrate.ts';
import { withDatabase } from '../helpers/database.ts';

describe('the schema dump', () => {
  const database = withDatabase();

  it('is up to date', async () => {
    expect(
      await readFile(SCHEMA_FILE, 'utf8'),
      'sql/schema.sql is not what sql/ makes: run `node bin/dump-schema.ts` and commit it',
    ).to.equal(await dumpSchema(database.url));
  });

  it('stays the same when everything is applied again', async () => {
    const before = await dumpSchema(database.url);
    const report = await migrate(database.url);
    expect(report).to.deep.equal({ migrations: [], warnings: [] });
    expect(await dumpSchema(database.url)).to.equal(before);
  });
});
