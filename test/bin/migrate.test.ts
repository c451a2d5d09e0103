/** A release is one step for who calls the database meanwhile: tables and what stands on them change together. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { migrate } from '../../bin/migrate.ts';
import { EMPTY_DATABASE, selectOne, withDatabase } from '../helpers/database.ts';

describe('migrate', () => {
  const database = withDatabase(EMPTY_DATABASE);

  it('shows tables, functions and views to others at the same moment', async () => {
    let isDone = false;
    const migrating = migrate(database.url).finally(() => {
      isDone = true;
    });
    const seen = new Set<string>();
    for (let isLast = false; !isLast; ) {
      isLast = isDone;
      const { text } = await selectOne<{ text: string }>(
        database.pool,
        `select format('tables %s, functions %s, views %s', to_regclass('app.requests') is not null,
                       to_regproc('app.submit_requests') is not null, to_regclass('admin.accounts') is not null) as text`,
      );
      seen.add(text);
    }
    expect((await migrating).migrations).to.include('0001_roles_and_schemas');
    expect([...seen]).to.deep.equal(['tables f, functions f, views f', 'tables t, functions t, views t']);
  });
});
