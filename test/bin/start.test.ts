/** `npm start` as a newcomer meets it: what it prints works, it stops cleanly, and it finds its data again. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { access, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { after, afterEach, before, describe, it } from 'mocha';
import { freePort } from '../../bin/embedded-postgres.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const START_TIMEOUT_MS = 60_000;

interface Running {
  readonly child: ChildProcess;
  readonly port: number;
  readonly adminPort: number;
  /** What it has printed. */
  readonly output: () => string;
  readonly exited: Promise<number | null>;
}

describe('npm start', function () {
  this.timeout(2 * START_TIMEOUT_MS);
  let dataDir: string;
  let running: Running | undefined;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'svc-start-'));
  });
  afterEach(async () => {
    running?.child.kill('SIGTERM');
    await running?.exited;
    running = undefined;
  });
  after(() => rm(dataDir, { recursive: true, force: true }));

  async function start(env: Record<string, string> = {}): Promise<Running> {
    const [port, adminPort] = [await freePort(), await freePort()];
    const child = spawn(process.execPath, [join(ROOT, 'bin', 'start.ts')], {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH,
        DATA_DIR: dataDir,
        PORT: String(port),
        ADMIN_PORT: String(adminPort),
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
    return { child, port, adminPort, output: () => output, exited };
  }

  /** Resolves when it has printed its welcome. */
  function welcomed(one: Running): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (one.output().includes('Ctrl-C')) resolve();
      };
      one.child.stdout?.on('data', look);
      void one.exited.then((code) => reject(new Error(`it ended with ${code}: ${one.output()}`)));
      look();
    });
  }

  const curlOf = (one: Running): string => /^ *(curl .*)$/m.exec(one.output())?.[1] ?? '';

  it('prints a curl line that works, and keeps the database’s address while it runs', async () => {
    running = await start();
    await welcomed(running);
    const { stdout } = await promisify(execFile)('sh', ['-c', `${curlOf(running)} -s`]);
    const answer = JSON.parse(stdout) as { choices: { message: { content: string } }[] };
    expect(answer.choices[0]?.message.content).to.contain('Hello!');
    expect((await fetch(`http://127.0.0.1:${running.port}/health`)).status).to.equal(200);
    expect(await readFile(join(dataDir, 'database-url'), 'utf8')).to.match(/^postgresql:\/\/.*\n$/);

    running.child.kill('SIGTERM');
    expect(await running.exited).to.equal(0);
    const gone = await access(join(dataDir, 'database-url')).then(
      () => false,
      () => true,
    );
    expect(gone).to.equal(true);
  });

  it('finds its data again, also after it was killed, and ends what that left behind', async () => {
    running = await start();
    await welcomed(running);
    const first = curlOf(running);
    running.child.kill('SIGKILL');
    await running.exited;

    running = await start();
    await welcomed(running);
    const key = /Bearer (svc_\S+?)'/.exec(first)?.[1] ?? '';
    expect(curlOf(running)).to.contain(key);
    const requests = await fetch(`http://127.0.0.1:${running.port}/v1/requests`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const { data } = (await requests.json()) as { data: unknown[] };
    expect(data).to.have.length(1);
  });

  it('refuses a second one on the same data, and leaves the first alone', async () => {
    running = await start();
    await welcomed(running);
    const second = await start();
    expect(await second.exited).to.equal(1);
    expect(second.output()).to.match(/^start: another npm start is running .*\n$/);
    expect((await fetch(`http://127.0.0.1:${running.port}/health`)).status).to.equal(200);
  });

  it('takes fixed demo credentials, but not in production', async () => {
    running = await start({ DEMO_API_KEY: 'svc_test_0123456789abcdef', DEMO_ADMIN_TOKEN: 'my-admin-token' });
    await welcomed(running);
    const credits = await fetch(`http://127.0.0.1:${running.port}/v1/key`, {
      headers: { authorization: 'Bearer svc_test_0123456789abcdef' },
    });
    expect(((await credits.json()) as { prefix: string }).prefix).to.equal('svc_test_');

    const refused = await start({ DEMO_API_KEY: 'svc_test_0123456789abcdef', NODE_ENV: 'production' });
    expect(await refused.exited).to.equal(1);
    expect(refused.output()).to.match(/^start: DEMO_API_KEY.*refused when NODE_ENV=production\n$/);
  });

  for (const [env, said] of [
    [{ ADMIN_JWT_SECRET: 'short' }, 'ADMIN_JWT_SECRET must have 32 bytes or more'],
    [{ ADMIN_JWKS_URL: 'keys' }, 'ADMIN_JWKS_URL must be an http or https address'],
    [{ LOG_LEVEL: 'bogus' }, 'LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent'],
  ] as const) {
    it(`says what is wrong before anything starts: ${Object.keys(env)[0]}`, async () => {
      const refused = await start(env);
      expect(await refused.exited).to.equal(1);
      expect(refused.output()).to.equal(`start: ${said}\n`);
    });
  }

  it('takes an empty LOG_LEVEL for one that is not set', async () => {
    running = await start({ LOG_LEVEL: '' });
    await welcomed(running);
    expect(running.output()).not.to.contain('"level":30');
  });

  it('says which port is taken', async () => {
    running = await start();
    await welcomed(running);
    const other = await mkdtemp(join(tmpdir(), 'svc-start-'));
    const second = await start({ PORT: String(running.port), DATA_DIR: other });
    expect(await second.exited).to.equal(1);
    expect(second.output()).to.contain(
      `port ${running.port} cannot be used (EADDRINUSE): set PORT to another`,
    );
    await rm(other, { recursive: true, force: true });
  });
});
