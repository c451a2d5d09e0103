import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { withAdmin } from './admin-client.ts';

const ENTRY = new URL('../../admin-graphql/index.ts', import.meta.url).pathname;

describe('admin: server', () => {
  const admin = withAdmin();

  async function post(
    body: string,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; code: unknown }> {
    const response = await fetch(`${admin.url}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${admin.tokens.reader.secret}`,
        ...headers,
      },
      body,
    });
    const { errors } = (await response.json()) as { errors?: { extensions: { code: unknown } }[] };
    return { status: response.status, code: errors?.[0]?.extensions.code };
  }

  it('shows a person the page without a token, with a hint, and nothing of it from elsewhere', async () => {
    const response = await fetch(`${admin.url}/`);
    const page = await response.text();
    expect(response.status).to.equal(200);
    expect(response.headers.get('content-type')).to.contain('text/html');
    expect(response.headers.get('content-security-policy')).to.contain("default-src 'self'");
    expect(page).to.contain('admin-token issue');
    expect(page).not.to.match(/(?:src|href)="(?:https?:)?\/\//);
    const assets = [...page.matchAll(/"(\/ruru-static\/[^"]+\.(?:js|css))"/g)].map(([, path]) => path);
    expect(assets.length).to.be.above(1);
    for (const path of new Set(assets)) {
      const asset = await fetch(`${admin.url}${path}`);
      expect(asset.status, path).to.equal(200);
      await asset.body?.cancel();
    }
  });

  it('lets the browser keep nothing of the headers, and so of the token', async () => {
    const page = await (await fetch(`${admin.url}/`)).text();
    const script = /<script>([^<]*graphiql:headers[^<]*)<\/script>/.exec(page)?.[1] ?? '';
    const kept = new Map<string, string>();
    class Storage {
      setItem(key: string, value: string): void {
        kept.set(key, value);
      }
    }
    runInNewContext(script, { Storage });
    const storage = new Storage();
    storage.setItem('graphiql:headers', 'Bearer svc_op_1');
    storage.setItem('graphiql:queries', '{"queries":[{"query":"{a}","headers":"Bearer svc_op_1"}]}');
    storage.setItem('graphiql:theme', 'dark');
    expect([...kept]).to.deep.equal([
      ['graphiql:queries', '{"queries":[{"query":"{a}"}]}'],
      ['graphiql:theme', 'dark'],
    ]);
  });

  it('says whether it is well', async () => {
    const response = await fetch(`${admin.url}/health`);
    expect(response.status).to.equal(200);
    expect(await response.json()).to.deep.equal({ status: 'ok', database: 'ok' });
  });

  it('answers 404 in JSON for any other path', async () => {
    const response = await fetch(`${admin.url}/v1/chat/completions`, { method: 'POST' });
    expect(response.status).to.equal(404);
    expect(await response.json()).to.have.nested.property('errors[0].extensions.code', 'not_found');
  });

  it('takes POST alone at /graphql', async () => {
    const response = await fetch(`${admin.url}/graphql?query={__typename}`);
    expect(response.status).to.equal(405);
    expect(response.headers.get('allow')).to.equal('POST');
  });

  it('refuses what is not a JSON request of bounded size', async () => {
    expect(await post('{"query": "{__typename}"}', { 'content-type': 'text/plain' })).to.deep.equal({
      status: 415,
      code: 'invalid_request',
    });
    expect(await post('not json')).to.deep.equal({ status: 400, code: 'invalid_request' });
    expect(await post('[]')).to.deep.equal({ status: 400, code: 'invalid_request' });
    expect(await post(JSON.stringify({ query: `# ${'x'.repeat(1024 * 1024)}` }))).to.deep.equal({
      status: 413,
      code: 'invalid_request',
    });
    expect(await post('{"query": "{ nonsense }"}')).to.deep.include({ code: 'invalid_request' });
    expect(await post('{"query": "{"}')).to.deep.include({ code: 'invalid_request' });
  });

  it('asks for a token before it reads a body', async () => {
    expect(await post('not json', { authorization: 'Bearer svc_op_x' })).to.deep.equal({
      status: 401,
      code: 'invalid_operator_token',
    });
  });

  it('tells nothing of the database when something breaks, and logs it under an id', async () => {
    await admin.database.pool.query(`create or replace function app.audit(p_actor text, p_action text, p_target_type text,
      p_target_id text, p_before jsonb, p_after jsonb) returns void language sql as 'select 1/0 from app.audit_log'`);
    const { errors } = await admin.ask('mutation { createAccount(input: {name: "x"}) { account { id } } }');
    const { message, extensions } = errors[0] ?? { message: '', extensions: { code: '' } };
    expect(extensions.code).to.equal('internal_error');
    expect(message).not.to.match(/division|zero|audit|app\./i);
    expect(admin.log.join('')).to.contain(String(extensions.errorId));
  });

  it('says in one line what is missing, and stops on SIGTERM', async () => {
    const run = (env: NodeJS.ProcessEnv) =>
      spawn(process.execPath, [ENTRY], { env: { PATH: process.env.PATH, ...env }, stdio: 'pipe' });

    const missing = run({});
    const said: string[] = [];
    missing.stderr.on('data', (chunk: Buffer) => said.push(chunk.toString()));
    expect(await once(missing, 'close')).to.deep.equal([1, null]);
    expect(said.join('')).to.match(/^admin: DATABASE_URL is not set.*\n$/);

    const started = run({ DATABASE_URL: admin.database.url, ADMIN_PORT: '0' });
    const [line] = (await once(started.stdout, 'data')) as [Buffer];
    expect(line.toString()).to.contain('listening');
    started.kill('SIGTERM');
    expect(await once(started, 'close')).to.deep.equal([0, null]);
  });
});
