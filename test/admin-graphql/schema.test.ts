import { readFile, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import {
  buildClientSchema,
  getIntrospectionQuery,
  type IntrospectionQuery,
  lexicographicSortSchema,
  printSchema,
} from 'graphql';
import { describe, it } from 'mocha';
import { selectRows } from '../helpers/database.ts';
import { withAdmin } from './admin-client.ts';

const SCHEMA_FILE = new URL('../../admin-graphql/schema.graphql', import.meta.url);

describe('admin: schema', () => {
  const admin = withAdmin();

  async function introspect(): Promise<IntrospectionQuery> {
    return await admin.must<IntrospectionQuery>(getIntrospectionQuery());
  }

  it('is the one written down in admin-graphql/schema.graphql', async () => {
    const printed = `${printSchema(lexicographicSortSchema(buildClientSchema(await introspect())))}\n`;
    if (process.env.SVC_UPDATE_SCHEMA) await writeFile(SCHEMA_FILE, printed);
    expect(printed).to.equal(await readFile(SCHEMA_FILE, 'utf8'));
  });

  it('has no hash anywhere', async () => {
    expect(JSON.stringify(await introspect())).not.to.match(/hash/i);
  });

  it('describes every type, and every field of what operators see and do', async () => {
    const { __schema: schema } = await introspect();
    const undescribed: string[] = [];
    for (const type of schema.types) {
      if (type.name.startsWith('__')) continue;
      if (!type.description && !['Query', 'Mutation'].includes(type.name)) undescribed.push(type.name);
      if (type.kind !== 'OBJECT' || /(?:Payload|Connection|Edge|PageInfo)$/.test(type.name)) continue;
      for (const field of type.fields) {
        const isRelation = field.type.kind === 'OBJECT' || field.args.length > 0;
        if (!field.description && !isRelation) undescribed.push(`${type.name}.${field.name}`);
      }
    }
    expect(undescribed).to.deep.equal([]);
  });

  it('filters and orders by columns that begin an index of the table', async () => {
    const tagged = await selectRows<{ view: string; column: string; is_indexed: boolean }>(
      admin.database.pool,
      `select c.relname as view, a.attname as column, exists (
          select from information_schema.view_column_usage u
            join pg_class t on t.relname = u.table_name and t.relnamespace = u.table_schema::regnamespace
            join pg_index i on i.indrelid = t.oid and i.indpred is null
            join pg_attribute k on k.attrelid = t.oid and k.attnum = i.indkey[0]
            where u.view_schema = 'admin' and u.view_name = c.relname and u.column_name = a.attname and k.attname = a.attname
              and u.table_schema = 'app'
        ) as is_indexed
        from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
        where c.relnamespace = 'admin'::regnamespace and c.relkind = 'v'
          and col_description(c.oid, a.attnum) ~ '@(filterable|sortable)'`,
    );
    expect(tagged.length).to.be.above(10);
    expect(tagged.filter(({ is_indexed }) => !is_indexed)).to.deep.equal([]);

    const { __schema: schema } = await introspect();
    const filters = schema.types.flatMap((type) =>
      type.kind === 'INPUT_OBJECT' && type.name.endsWith('Condition') ? type.inputFields : [],
    );
    const orders = schema.types.flatMap((type) =>
      type.kind === 'ENUM' && type.name.endsWith('OrderBy')
        ? type.enumValues.filter(({ name }) => !/^(?:NATURAL|PRIMARY_KEY_(?:ASC|DESC))$/.test(name))
        : [],
    );
    expect(filters.length).to.equal(tagged.length);
    expect(orders.map(({ name }) => name).sort()).to.deep.equal(['CREATED_AT_ASC', 'CREATED_AT_DESC']);
  });

  it('has one page-size argument that caps every list', async () => {
    const { __schema: schema } = await introspect();
    for (const type of schema.types) {
      if (type.kind !== 'OBJECT') continue;
      for (const field of type.fields) {
        const named = field.type.kind === 'NON_NULL' ? field.type.ofType : field.type;
        if (!('name' in named) || !named.name?.endsWith('Connection')) continue;
        const names = field.args.map(({ name }) => name);
        expect(names, `${type.name}.${field.name}`).to.include('first').and.not.to.include('offset');
      }
    }
  });
});
