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
    const [committed, fresh] = [await readFile(SCHEMA_FILE, 'utf8'), await dumpSchema(database.url)];
    const [committedLines, freshLines] = [committed.split('\n'), fresh.split('\n')];
    const difference = [
      ...committedLines.filter((line) => !freshLines.includes(line)).map((line) => `- ${line}`),
      ...freshLines.filter((line) => !committedLines.includes(line)).map((line) => `+ ${line}`),
    ];
    const hint = 'sql/schema.sql is not what sql/ makes: run `node bin/dump-schema.ts` and commit it';
    expect(difference, hint).to.deep.equal([]);
    expect(committed === fresh, `${hint} (the order differs)`).to.equal(true);
  });

  it('stays the same when everything is applied again', async () => {
    const before = await dumpSchema(database.url);
    const report = await migrate(database.url);
    expect(report).to.deep.equal({ migrations: [], warnings: [] });
    expect(await dumpSchema(database.url)).to.equal(before);
  });
});
