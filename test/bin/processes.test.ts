/** Web and worker without a store that they can use: one line that says which and what to do, and code 1. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { withDatabase } from '../helpers/database.ts';
import { runToEnd } from '../helpers/processes.ts';
import { startRedis, type TestRedis } from '../helpers/redis.ts';

describe('a process whose stores cannot be used', () => {
  const database = withDatabase();
  let dataDir: string;
  let redis: TestRedis | undefined;
  before(async function () {
    dataDir = await mkdtemp(join(tmpdir(), 'svc-processes-'));
    redis = await startRedis();
    if (redis === undefined) this.skip();
  });
  after(async () => {
    await redis?.stop();
    await rm(dataDir, { recursive: true });
  });

  for (const [name, modulePath] of [
    ['web', 'ingress/index.ts'],
    ['worker', 'workers/index.ts'],
  ] as const) {
    const run = (databaseUrl: string, redisUrl: string | undefined) =>
      runToEnd(modulePath, {
        DATABASE_URL: databaseUrl,
        REDIS_URL: redisUrl,
        LOG_LEVEL: 'error',
        PORT: '0',
        DATA_DIR: dataDir,
      });

    it(`${name}: Redis is away`, async () => {
      const { code, stdout, stderr } = await run(database.url, 'redis://me:hidden@127.0.0.1:1/2');
      expect({ code, stdout, stderr }).to.deep.equal({
        code: 1,
        stdout: '',
        stderr: `${name}: Redis at REDIS_URL (127.0.0.1:1) cannot be reached: ECONNREFUSED\n`,
      });
    });

    it(`${name}: the database is away`, async () => {
      const { code, stdout, stderr } = await run('postgresql://me:hidden@127.0.0.1:1/svc', redis?.url);
      expect({ code, stdout, stderr }).to.deep.equal({
        code: 1,
        stdout: '',
        stderr: `${name}: the database at 127.0.0.1:1 cannot be reached: connect ECONNREFUSED 127.0.0.1:1\n`,
      });
    });

    it(`${name}: the database was never released`, async () => {
      const { code, stdout, stderr } = await run(database.url.replace(/[^/]+$/, 'postgres'), redis?.url);
      expect([code, stdout]).to.deep.equal([1, '']);
      expect(stderr).to.match(
        new RegExp(
          `^${name}: the database is not set up for this version: run \`npm run release\` [^\\n]+\\n$`,
        ),
      );
    });
  }
});
