/** `svc catalog verify`: each provider is asked over the wire. */
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { withDatabase } from '../helpers/database.ts';
import { type MockUpstream, startMockUpstream } from '../helpers/mock-upstream.ts';
import { printedObject, run } from './command.ts';

describe('svc catalog verify', () => {
  const database = withDatabase();
  let upstream: MockUpstream;
  before(async () => {
    upstream = await startMockUpstream({ credential: 'sk-right' });
    await database.pool.query(
      `insert into app.providers (name, kind, base_url, credential_env) values ('outside', 'openai', $1, 'OUTSIDE_KEY')`,
      [upstream.baseUrl],
    );
    await database.pool.query(
      `insert into app.models (id, type, max_tokens, context_tokens) values ('chat', 'chat', 10, 100)`,
    );
    await database.pool.query(
      `insert into app.routes (model_id, provider, upstream_model) values ('chat', 'outside', 'no-such-model')`,
    );
  });
  after(() => upstream.close());

  const verify = (key: string) =>
    run('svc', ['catalog', 'verify', '--json'], { DATABASE_URL: database.url, OUTSIDE_KEY: key });

  it('says which models of our routes a provider does not list', async () => {
    const finished = await verify('sk-right');
    expect(printedObject(finished)).to.deep.equal({
      providers: [{ provider: 'outside', ok: true, missing_models: ['no-such-model'] }],
    });
    expect(finished.status).to.equal(1);
  });

  it('says when a provider refuses our credential, without showing it', async () => {
    const finished = await verify('sk-wrong');
    const { providers } = printedObject(finished) as { providers: { ok: boolean }[] };
    expect(providers[0]?.ok).to.equal(false);
    expect(finished.stdout + finished.stderr).not.to.contain('sk-wrong');
    expect(finished.status).to.equal(1);
  });
});
