/** The command line before it reaches the books: wrong usage, user tokens, and finding the database. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { jwtVerify } from 'jose';
import { after, before, describe, it } from 'mocha';
import { withDatabase } from '../helpers/database.ts';
import { printedObject, run } from './command.ts';

const NOBODY = '00000000-0000-4000-8000-000000000000';

describe('wrong usage of svc exits with 2 and says in one line what is allowed', () => {
  const issue = ['key', 'issue', '--account', NOBODY];
  const cases: readonly (readonly [readonly string[], string])[] = [
    [['frobnicate'], "unknown command 'frobnicate'"],
    [['key', 'isue'], "unknown command 'isue' (Did you mean issue?)"],
    [['account', 'create'], "required option '--name <name>' not specified"],
    [['account', 'create', '--name', ' '], 'It must have from 1 to 200 characters.'],
    [['account', 'create', '--name', 'x'.repeat(201)], 'It must have from 1 to 200 characters.'],
    [['account', 'create', '--name', 'A', '--kind', 'club'], 'Allowed choices are personal, enterprise.'],
    [['account', 'create', '--name', 'A', '--language', 'fr'], 'Allowed choices are ja, en.'],
    [['account', 'create', '--name', 'A', 'B'], 'too many arguments'],
    [['account', 'create', '--name', 'A', '--colour', 'red'], "unknown option '--colour'"],
    [['key', 'issue', '--account', '17'], 'It must be a UUID.'],
    [['key', 'revoke', '--key', 'x'], 'It must be a UUID.'],
    [[...issue, '--prefix', 'sk_'], 'Allowed choices are svc_live_, svc_test_, svc_beta_.'],
    [[...issue, '--scopes', 'llm,everything'], 'Scopes are llm, tts, images, x, cert.'],
    [[...issue, '--scopes', ''], 'It must be words with commas between them.'],
    [[...issue, '--models', 'a,,b'], 'It must be words with commas between them.'],
    [[...issue, '--cap-daily-ap', '-1'], 'It must be a whole number from 0 to'],
    [[...issue, '--cap-daily-ap', '1e3'], 'It must be a whole number from 0 to'],
    [[...issue, '--cap-daily-ap', '9007199254740993'], 'It must be a whole number from 0 to'],
    [[...issue, '--rate-per-minute', '0'], 'It must be a whole number from 1 to'],
    [[...issue, '--expires-at', 'tomorrow'], 'It must be an ISO 8601 date'],
    [[...issue, '--expires-at', '2027-02-29'], 'It must be an ISO 8601 date'],
    [[...issue, '--expires-at', '2027-02-28T10:00:00'], 'with its zone'],
    [['grant', '--account', NOBODY, '--ap', '1', '--reason', 'r'], "required option '--kind <kind>'"],
    [['grant', '--account', NOBODY, '--ap', '1.5'], 'It must be a whole number'],
    [['admin-token', 'issue', '--name', 'A', '--role', 'root'], 'Allowed choices are reader, operator.'],
    [['user-token', '--sub', 'a', '--expires-in', '0'], 'It must be a whole number from 1 to'],
    [['catalog', 'import'], "missing required argument 'file'"],
  ];
  for (const [args, words] of cases) {
    it(`svc ${args.join(' ').slice(0, 80)}`, async () => {
      const { status, stdout, stderr } = await run('svc', [...args, '--json'], {});
      expect([status, stdout]).to.deep.equal([2, '']);
      expect(stderr)
        .to.match(/^svc: [^\n]+\n$/)
        .and.to.include(words);
    });
  }

  it('shows the commands when there is none', async () => {
    const { status, stdout, stderr } = await run('svc', [], {});
    expect([status, stdout]).to.deep.equal([2, '']);
    expect(stderr).to.include('Usage: svc');
    const help = await run('svc', ['--help'], {});
    expect([help.status, help.stderr]).to.deep.equal([0, '']);
  });
});

describe('svc user-token', () => {
  let dataDir: string;
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'svc-cli-'));
    await writeFile(join(dataDir, 'demo.json'), JSON.stringify({ userTokenSecret: 'kept by the demo' }));
  });
  after(() => rm(dataDir, { recursive: true }));

  const cases: readonly (readonly [string, Record<string, string>, string, string])[] = [
    ['USER_TOKEN_SECRET', { USER_TOKEN_SECRET: 'given', DEMO_USER_TOKEN_SECRET: 'demo' }, 'given', 'svc'],
    ['DEMO_USER_TOKEN_SECRET', { DEMO_USER_TOKEN_SECRET: 'given for the demo' }, 'given for the demo', 'svc'],
    ['the secret that the demo keeps', {}, 'kept by the demo', 'svc'],
    [
      'the configured issuer and audience',
      { USER_TOKEN_SECRET: 's', USER_TOKEN_ISSUER: 'i', USER_TOKEN_AUDIENCE: 'i' },
      's',
      'i',
    ],
  ];
  for (const [title, env, secret, issuer] of cases) {
    it(`signs with ${title}, and asks no database`, async () => {
      const args = ['user-token', '--sub', 'user-7', '--expires-in', '60', '--json'];
      const printed = printedObject(await run('svc', args, { DATA_DIR: dataDir, ...env }));
      expect(printed).to.have.all.keys('token');
      const { payload } = await jwtVerify(printed.token as string, new TextEncoder().encode(secret), {
        algorithms: ['HS256'],
        issuer,
        audience: issuer,
      });
      expect(payload.sub).to.equal('user-7');
      expect((payload.exp ?? 0) - (payload.iat ?? 0)).to.equal(60);
    });
  }

  it('says what is missing', async () => {
    const { status, stdout, stderr } = await run('svc', ['user-token', '--sub', 'a', '--json'], {});
    expect([status, stdout]).to.deep.equal([1, '']);
    expect(stderr).to.match(/^svc: no secret to sign with: USER_TOKEN_SECRET is not set [^\n]+\n$/);
  });

  it('never signs with a demo secret in production', async () => {
    const env = { NODE_ENV: 'production', DATA_DIR: dataDir, DEMO_USER_TOKEN_SECRET: 'demo' };
    expect(await run('svc', ['user-token', '--sub', 'a'], env)).to.deep.equal({
      status: 1,
      stdout: '',
      stderr: 'svc: USER_TOKEN_SECRET is not set\n',
    });
  });
});

describe('the database of svc', () => {
  const database = withDatabase();
  let dataDir: string;
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'svc-cli-'));
  });
  after(() => rm(dataDir, { recursive: true }));

  it('is the embedded one of DATA_DIR when DATABASE_URL is not set', async () => {
    await writeFile(join(dataDir, 'database-url'), `${database.url}\n`);
    expect((await run('svc', ['ledger', 'check'], { DATA_DIR: dataDir })).status).to.equal(0);
  });

  const failures: readonly (readonly [string, () => Record<string, string>, RegExp])[] = [
    [
      'none',
      () => ({}),
      /^svc: no database: DATABASE_URL is not set and \/nonexistent\/database-url is not there/,
    ],
    [
      'one that does not answer',
      () => ({ DATABASE_URL: 'postgresql://me:hidden@127.0.0.1:1/svc' }),
      /^svc: the database at 127\.0\.0\.1:1 cannot be reached: connect ECONNREFUSED/,
    ],
    [
      'one that is not there',
      () => ({ DATABASE_URL: database.url.replace(/[^/]+$/, `no_${randomUUID().slice(0, 8)}`) }),
      /^svc: database "no_\w+" does not exist/,
    ],
    [
      'one that was not set up',
      () => ({ DATABASE_URL: database.url.replace(/[^/]+$/, 'postgres') }),
      /^svc: the database is not set up for this version: run `npm run release`/,
    ],
    ['a faulty configuration', () => ({ PORT: 'x' }), /^svc: PORT must be a whole number from 0 to 65535/],
  ];
  for (const [title, env, words] of failures) {
    it(`fails with one line: ${title}`, async () => {
      const { status, stdout, stderr } = await run('svc', ['ledger', 'check', '--json'], env());
      expect([status, stdout]).to.deep.equal([1, '']);
      expect(stderr)
        .to.match(words)
        .and.to.match(/^[^\n]+\n$/);
      expect(stderr).not.to.include('hidden');
    });
  }
});
