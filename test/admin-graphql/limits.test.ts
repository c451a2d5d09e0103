import { expect } from 'chai';
import { describe, it } from 'mocha';
import { getIntrospectionQuery } from 'postgraphile/graphql';
import { makeAccount, makeModel, makeSubmission, submit } from '../helpers/database.ts';
import { withAdmin } from './admin-client.ts';

describe('admin: pages and limits', () => {
  const admin = withAdmin();

  interface Page {
    readonly requests: {
      readonly nodes: readonly { readonly id: string }[];
      readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string };
    };
  }
  const PAGE = `query ($first: Int, $after: Cursor) { requests(first: $first, after: $after) {
    nodes { id } pageInfo { hasNextPage endCursor } } }`;

  it('reads requests newest first, 20 at a time unless asked, by cursor', async () => {
    const accountId = await makeAccount(admin.database.pool, { grantedAp: 10_000 });
    const submissions = Array.from({ length: 45 }, () => makeSubmission(accountId, { hold_ap: 1 }));
    await submit(admin.database.pool, submissions);
    const newestFirst = submissions
      .map(({ id }) => id)
      .sort()
      .reverse();

    const read: string[] = [];
    const sizes: number[] = [];
    for (let after: string | null = null, isLast = false; !isLast; ) {
      const { requests }: Page = await admin.must<Page>(PAGE, { after });
      read.push(...requests.nodes.map(({ id }) => id));
      sizes.push(requests.nodes.length);
      after = requests.pageInfo.endCursor;
      isLast = !requests.pageInfo.hasNextPage;
    }
    expect(read).to.deep.equal(newestFirst);
    expect(sizes).to.deep.equal([20, 20, 5]);

    const { requests } = await admin.must<Page>(
      `{ requests(last: 2) { nodes { id } pageInfo { hasNextPage endCursor } } }`,
    );
    expect(requests.nodes.map(({ id }) => id)).to.deep.equal(newestFirst.slice(-2));
  });

  it('finds requests of a time by state, area and account', async () => {
    const accountId = await makeAccount(admin.database.pool, { grantedAp: 1000 });
    const submission = makeSubmission(accountId);
    await submit(admin.database.pool, [submission]);
    const search = async (more: string): Promise<unknown> =>
      (await admin.must<Record<string, unknown>>(`{ searchRequests(${more}) { nodes { id } } }`))
        .searchRequests;
    const hourAgo = new Date(Date.now() - 3_600_000).toISOString();
    const mine = `from: "${hourAgo}", account: "${accountId}"`;
    expect(await search(`${mine}, state: queued, area: "llm"`)).to.deep.equal({
      nodes: [{ id: submission.id }],
    });
    expect(await search(`${mine}, state: failed`)).to.deep.equal({ nodes: [] });
    expect(await search(`${mine}, to: "${hourAgo}"`)).to.deep.equal({ nodes: [] });
  });

  it('finds an account by id, subject or the beginning of its name', async () => {
    const id = await makeAccount(admin.database.pool, { name: 'Zebra_100% Ltd', subject: 'zebra-sub' });
    for (const text of [id, 'zebra-sub', 'zebra_100%', 'ZEB']) {
      expect(
        await admin.must('query ($text: String!) { searchAccounts(text: $text) { nodes { id } } }', { text }),
      ).to.deep.equal({ searchAccounts: { nodes: [{ id }] } });
    }
    expect(await admin.must('{ searchAccounts(text: "ebra") { nodes { id } } }')).to.deep.equal({
      searchAccounts: { nodes: [] },
    });
  });

  for (const [what, query, variables] of [
    ['first', '{ accounts(first: 101) { nodes { id } } }', {}],
    ['last', '{ accounts(last: 101) { nodes { id } } }', {}],
    ['a variable', PAGE, { first: 101 }],
    ['a negative first', '{ accounts(first: -1) { nodes { id } } }', {}],
    ['first on a function', '{ searchAccounts(text: "a", first: 101) { nodes { id } } }', {}],
  ] as const) {
    it(`refuses a page of more than 100 rows (${what})`, async () => {
      const { errors } = await admin.ask(query, variables);
      expect(errors[0]?.extensions).to.deep.include({ code: 'invalid_parameter', maximum: 100 });
    });
  }

  it('refuses a page of more than 100 rows on a relation', async () => {
    await makeAccount(admin.database.pool);
    const { errors } = await admin.ask('{ accounts { nodes { keys(first: 101) { nodes { id } } } } }');
    expect(errors[0]?.extensions).to.deep.include({ code: 'invalid_parameter', maximum: 100 });
  });

  const nested = (levels: number): string =>
    levels === 0 ? 'id' : `id keys(first: 1) { nodes { account { ${nested(levels - 1)} } } }`;
  const mutations = (count: number): string =>
    Array.from({ length: count }, (_, n) => `m${n}: checkLedger(input: {}) { __typename }`).join(' ');

  for (const [limit, query] of [
    ['depth', `{ accounts(first: 1) { nodes { ${nested(4)} } } }`],
    ['fields', `{ ${Array.from({ length: 501 }, (_, n) => `a${n}: model(id: "m") { id }`).join(' ')} }`],
    [
      'rows',
      '{ requests(first: 100) { nodes { account { keys(first: 100) { nodes { account { keys(first: 3) { nodes { id } } } } } } } } }',
    ],
    [
      'rows',
      'query ($n: Int) { requests(first: $n) { nodes { account { keys(first: $n) { nodes { account { keys { nodes { id } } } } } } } } }',
    ],
    ['mutations', `mutation { ${mutations(11)} }`],
    ['mutations', `mutation { ...Many } fragment Many on Mutation { ${mutations(11)} }`],
  ] as const) {
    it(`refuses a query too large in ${limit}: ${query.slice(0, 50)}…`, async () => {
      const { data, errors } = await admin.ask(query);
      expect(data).to.equal(null);
      expect(errors[0]?.extensions).to.deep.include({ code: 'query_too_large', limit });
    });
  }

  it('measures a fragment once, however often it is spread', async () => {
    const fragments = Array.from(
      { length: 30 },
      (_, n) => `fragment F${n} on Account { id ...F${n + 1} ...F${n + 1} }`,
    ).join(' ');
    const { errors } = await admin.ask(
      `{ accounts { nodes { ...F0 } } } ${fragments} fragment F30 on Account { name }`,
    );
    expect(errors[0]?.extensions.code).to.equal('query_too_large');
  });

  it('refuses fragments that spread each other again and again, also where they ask for no field', async () => {
    const chain = Array.from(
      { length: 30 },
      (_, n) => `fragment f${n} on Query{...f${n + 1} ...f${n + 1}}`,
    ).join(' ');
    const { data, errors } = await admin.ask(`{...f0} ${chain} fragment f30 on Query{__typename}`);
    expect(data).to.equal(null);
    expect(errors[0]?.extensions).to.deep.include({ code: 'query_too_large', limit: 'selections' });
  });

  it('refuses a subscription, of which there is none, and logs nothing', async () => {
    for (const query of ['subscription { __typename }', '{ __typename } subscription S { __typename }']) {
      const { data, errors } = await admin.ask(query);
      expect(data).to.equal(null);
      expect(errors[0]?.extensions.code).to.equal('invalid_request');
    }
    expect(admin.log).to.deep.equal([]);
  });

  it('answers the introspection that tools send', async () => {
    const { __schema: schema } = await admin.must<{ __schema: object }>(
      getIntrospectionQuery({ inputValueDeprecation: true, schemaDescription: true, oneOf: true }),
    );
    expect(schema).to.include.keys('queryType', 'types', 'directives');
  });

  it('shows prices and models with their relations', async () => {
    const { modelId } = await makeModel(admin.database.pool);
    expect(
      await admin.must(
        `{ model(id: "${modelId}") { type routes { nodes { providerName upstreamModel provider { kind } } }
             prices { nodes { isInForce unit apInPer1k model { id } } } } }`,
      ),
    ).to.deep.equal({
      model: {
        type: 'chat',
        routes: {
          nodes: [{ providerName: 'sandbox', upstreamModel: modelId, provider: { kind: 'sandbox' } }],
        },
        prices: {
          nodes: [{ isInForce: true, unit: 'per_1k_tokens', apInPer1k: 25, model: { id: modelId } }],
        },
      },
    });
  });
});
