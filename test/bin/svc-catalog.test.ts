/** `svc catalog` and `release` as child processes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { parse } from 'yaml';
import { selectOne, selectRows, withDatabase } from '../helpers/database.ts';
import { type Finished, printedObject, run } from './command.ts';

const SANDBOX = 'catalogue/sandbox.yaml';

describe('svc catalog', () => {
  const database = withDatabase();
  const svc = (...args: string[]): Promise<Finished> => run('svc', args, { DATABASE_URL: database.url });
  let folder: string;
  const file = async (name: string, text: string): Promise<string> => {
    const path = join(folder, name);
    await writeFile(path, text);
    return path;
  };
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-catalog-'));
  });
  after(() => rm(folder, { recursive: true }));

  const speech = (ap: string): string =>
    `providers: [{name: sandbox, kind: sandbox}]
models:
  - {id: speech-main, type: speech, routes: [{provider: sandbox, upstream_model: s}], pricing: {ap: ${ap}}}
voices:
  - {slug: narrator, name: Narrator, provider: sandbox, upstream_voice: a, model: speech-main}
`;

  it('import prints how many there are, of the sandbox catalogue too', async () => {
    const finished = await svc('catalog', 'import', SANDBOX, '--json');
    expect([finished.status, finished.stderr]).to.deep.equal([0, '']);
    expect(printedObject(finished)).to.deep.equal({ providers: 2, models: 8, voices: 4 });
    expect(
      await selectRows(
        database.pool,
        `select m.id, m.max_tokens, m.context_tokens, p.ap_in_per_1k, p.ap_out_per_1k
           from app.models m join app.prices p on p.model_id = m.id where m.type = 'chat' order by m.id`,
      ),
    ).to.deep.equal([
      {
        id: 'sandbox-chat',
        max_tokens: 16384,
        context_tokens: 128000,
        ap_in_per_1k: 25,
        ap_out_per_1k: 100,
      },
      {
        id: 'sandbox-chat-small',
        max_tokens: 4096,
        context_tokens: 128000,
        ap_in_per_1k: 5,
        ap_out_per_1k: 20,
      },
    ]);
    expect(await svc('catalog', 'import', SANDBOX)).to.deep.equal({
      status: 0,
      stdout: 'Imported 2 providers, 8 models, 4 voices\n',
      stderr: '',
    });
    expect(
      await selectRows(database.pool, `select actor from app.audit_log where action = 'import_catalogue'`),
    ).to.deep.equal([{ actor: 'cli' }]);
  });

  it('import tells price changes and retired models on stderr', async () => {
    await svc('catalog', 'import', await file('before.yaml', speech('200')));
    const finished = await svc('catalog', 'import', await file('after.yaml', speech('210')), '--json');
    expect(printedObject(finished)).to.deep.equal({ providers: 1, models: 1, voices: 1 });
    expect(finished.stderr).to.match(
      /^Price of speech-main: ap 200 → ap 210 from \d{4}-\d\d-\d\dT[\d:.]+Z\n$/,
    );
    const pruned = await svc('catalog', 'import', await file('after.yaml', speech('210')), '--prune');
    const retired = [
      'gallery-submit',
      'sandbox-chat',
      'sandbox-chat-small',
      'sandbox-image',
      'sandbox-speech',
      'sandbox-transcription',
      'tts_multilingual_v2',
      'tts_v3',
    ];
    expect(pruned.stderr).to.equal(retired.map((id) => `Retired model ${id}\n`).join(''));
    expect(await svc('catalog', 'import', SANDBOX)).to.deep.include({ status: 0, stderr: '' });
  });

  it('import lists every mistake with its line, and writes nothing', async () => {
    const path = await file('faulty.yaml', speech('-1').replace('kind: sandbox', 'kind: sand'));
    expect(await svc('catalog', 'import', path, '--json')).to.deep.equal({
      status: 1,
      stdout: '',
      stderr: [
        `${path}:1:35: kind must be one of openai, elevenlabs, x, sandbox, not "sand"`,
        `${path}:3:101: ap must be a whole number from 0 to 100000000, not -1`,
        '',
      ].join('\n'),
    });
  });

  it('import says when there is no file', async () => {
    expect(await svc('catalog', 'import', '/nonexistent.yaml')).to.deep.equal({
      status: 1,
      stdout: '',
      stderr: 'svc: /nonexistent.yaml cannot be read: ENOENT\n',
    });
  });

  it('export prints YAML that imports again and changes nothing', async () => {
    const { stdout, status, stderr } = await svc('catalog', 'export');
    expect([status, stderr]).to.deep.equal([0, '']);
    const exported = parse(stdout) as Record<string, unknown[]>;
    const entries = await selectOne(database.pool, 'select count(*) from app.audit_log');
    const again = await svc('catalog', 'import', await file('exported.yaml', stdout), '--json');
    expect(printedObject(again)).to.deep.equal({
      providers: exported.providers?.length,
      models: exported.models?.length,
      voices: exported.voices?.length,
    });
    expect(await selectOne(database.pool, 'select count(*) from app.audit_log')).to.deep.equal(entries);
    const json = printedObject(await svc('catalog', 'export', '--json'));
    expect(json).to.deep.equal({ ...printedObject(again), yaml: stdout });
  });
});

describe('release', () => {
  const database = withDatabase();

  it('says in one line that DATABASE_URL is missing', async () => {
    expect(await run('release', [], {})).to.deep.equal({
      status: 1,
      stdout: '',
      stderr: 'release: DATABASE_URL is not set: release needs the address of the database\n',
    });
  });

  it('says in one line that the database does not answer, without the password', async () => {
    const { status, stderr } = await run('release', [], {
      DATABASE_URL: 'postgresql://me:hidden@127.0.0.1:1/svc',
    });
    expect(status).to.equal(1);
    expect(stderr).to.match(/^release: the database at 127\.0\.0\.1:1 cannot be reached: [^\n]+\n$/);
    expect(stderr).not.to.include('hidden');
  });

  it('brings a database up to date, tells what it did, and can be run again', async () => {
    const name = 'svc_release_test';
    await database.pool.query(`create database ${name}`);
    const env = { DATABASE_URL: database.url.replace(/[^/]+$/, name) };
    try {
      const first = await run('release', [], env);
      expect([first.status, first.stderr]).to.deep.equal([0, '']);
      expect(first.stdout).to.include('release: applied migration 0001_roles_and_schemas\n');
      expect(first.stdout).to.match(/release: \d+ new migrations; functions and grants are up to date\n$/);
      expect(await run('release', [], env)).to.deep.equal({
        status: 0,
        stdout: 'release: no new migrations; functions and grants are up to date\n',
        stderr: '',
      });
    } finally {
      await database.pool.query(`drop database ${name} with (force)`);
    }
  });

  it('imports CATALOG_FILE', async () => {
    const finished = await run('release', [], { DATABASE_URL: database.url, CATALOG_FILE: SANDBOX });
    expect(finished).to.deep.equal({
      status: 0,
      stdout:
        'release: no new migrations; functions and grants are up to date\n' +
        'release: Imported 2 providers, 8 models, 4 voices\n',
      stderr: '',
    });
    const missing = await run('release', [], { DATABASE_URL: database.url, CATALOG_FILE: '/nonexistent' });
    expect([missing.status, missing.stderr]).to.deep.equal([
      1,
      'release: /nonexistent cannot be read: ENOENT\n',
    ]);
  });
});
