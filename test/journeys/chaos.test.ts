/**
 * Two webs, two workers, a real Redis and PostgreSQL, under load, and every one of them ended without warning. Whatever
 * happens: every hold is resolved, what is charged is what was served, and the service recovers with nobody's help.
 *
 * `CHAOS_SEED` repeats a run's requests (not its timing); `CHAOS_CONCURRENCY` is how many callers there are.
 */
import { fail } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { after, afterEach, before, beforeEach, describe, it } from 'mocha';
import { auditBooks } from '../helpers/chaos-books.ts';
import {
  AP_IN_PER_1K,
  AP_OUT_PER_1K,
  type Caller,
  Load,
  MODEL_IDS,
  makeRandom,
  programUpstream,
} from '../helpers/chaos-load.ts';
import { makeAccount, makeKey, makeModel, selectOne } from '../helpers/database.ts';
import { type MockUpstream, startMockUpstream } from '../helpers/mock-upstream.ts';
import { runToEnd, type Stack, startStack, until } from '../helpers/processes.ts';

const SEED = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 1e9));
const CONCURRENCY = Number(process.env.CHAOS_CONCURRENCY ?? 24);
const ACCOUNTS = 10;
const INITIAL_AP = 50_000_000;
/** No hold is older than this after the last kill, and no caller waits longer. */
const RESOLVED_WITHIN_MS = 60_000;
/** A dead worker's requests are taken up by another within this. */
const RESCUED_WITHIN_MS = 15_000;
/** Both webs answer paid requests again, PostgreSQL's crash recovery and a process's start included. */
const SERVING_WITHIN_MS = 15_000;
/** What a platform leaves a process between SIGTERM and SIGKILL, less a margin. */
const STOPPED_WITHIN_MS = 25_000;

describe('chaos: processes end under load', function () {
  this.timeout(180_000);
  this.slow(120_000);

  let upstream: MockUpstream;
  let stack: Stack;
  let prober: Caller;
  let load: Load;
  const loads: Load[] = [];
  const callers: Caller[] = [];
  const random = makeRandom(SEED);
  const timeline: string[] = [];
  const note = (text: string): void =>
    void timeline.push(`${new Date().toISOString().slice(11, 23)} ${text}`);

  before('start the service', async function () {
    upstream = await startMockUpstream();
    programUpstream(upstream);
    const started = await startStack({
      webs: 2,
      workers: 2,
      env: { INITIAL_GRANT_AP: '0' },
      prepare: async (pool) => {
        for (const id of MODEL_IDS) {
          const provider = { name: 'mock', kind: 'openai', baseUrl: upstream.baseUrl } as const;
          await makeModel(pool, { id, apInPer1k: AP_IN_PER_1K, apOutPer1k: AP_OUT_PER_1K, provider });
        }
        for (let n = 0; n <= ACCOUNTS; n += 1) {
          const accountId = await makeAccount(pool, { name: `Caller ${n}`, purchasedAp: INITIAL_AP });
          callers.push({ accountId, secret: (await makeKey(pool, accountId)).secret });
        }
        prober = callers[0] ?? fail('no account was made');
      },
    });
    if (started === undefined) this.skip();
    stack = started;
  });

  after('stop the service', async () => {
    await stack?.stop();
    await upstream?.close();
  });

  beforeEach(async () => {
    timeline.length = 0;
    load = new Load({
      origins: stack.origins,
      callers: callers.slice(2),
      hot: callers[1] ?? fail('no account was made'),
      concurrency: CONCURRENCY,
      random,
      patienceMs: RESOLVED_WITHIN_MS,
    });
    loads.push(load);
    load.start();
    await sleep(2000);
  });

  afterEach(async function () {
    await load.stop();
    const title = this.currentTest?.title ?? '';
    const state = this.currentTest?.state ?? '';
    const logs =
      state === 'passed'
        ? []
        : [...stack.webs, ...stack.workers].map((one) => `${one.name}:\n${one.logTail(8)}`);
    process.stderr.write(`${[`      seed ${SEED}: ${title}`, ...timeline, ...logs].join('\n        ')}\n`);
  });

  /** The load ends, every hold is resolved in time, and the books say what the callers saw. */
  async function expectTrueBooks(): Promise<void> {
    const lastKillAt = performance.now();
    await load.stop();
    const left = RESOLVED_WITHIN_MS - (performance.now() - lastKillAt);
    await until(async () => (await countOpenHolds()) === 0, left, 'the end of every hold').catch(
      () => undefined,
    );
    await until(async () => (await countJobs()) === 0, 10_000, 'an empty queue').catch(() => undefined);
    note(`every hold was resolved ${seconds(performance.now() - lastKillAt)} after the last event`);
    const { problems, summary } = await auditBooks({
      pool: stack.pool,
      attempts: loads.flatMap(({ attempts }) => attempts),
      origin: stack.origins[0] ?? '',
      initialAp: INITIAL_AP,
    });
    note(summary);
    expect(problems.length, `\n${problems.slice(0, 40).join('\n')}\n`).to.equal(0);
    for (const { name, unexpectedExits } of [...stack.webs, ...stack.workers])
      expect(unexpectedExits, `${name} ended by itself`).to.deep.equal([]);
  }

  async function countOpenHolds(): Promise<number> {
    return (await selectOne<{ count: number }>(stack.pool, 'select count(*) from app.holds')).count;
  }

  async function countJobs(): Promise<number> {
    const text = "select count(*) from graphile_worker.jobs where task_identifier not like 'maintenance/%'";
    return (await selectOne<{ count: number }>(stack.pool, text)).count;
  }

  /** Both webs answer a paid request that began after `since`. */
  async function expectServing(what: string, since: number): Promise<void> {
    await Promise.all(
      stack.origins.map((origin) =>
        until(
          async () => (await load.probe(origin, prober)).outcome === 'complete',
          SERVING_WITHIN_MS,
          `${origin} serving again`,
        ),
      ),
    );
    note(`${what}: both webs serve after ${seconds(performance.now() - since)}`);
  }

  /** The workers that were silent since `since` are off the list, and their jobs are free. */
  async function expectRescue(since: Date): Promise<void> {
    const silent = 'select count(*) from app.processes where beat_at <= $1';
    const tookMs = await until(
      async () => (await selectOne<{ count: number }>(stack.pool, silent, [since])).count === 0,
      RESCUED_WITHIN_MS,
      'the rescue of the dead worker',
    );
    note(`the dead one's requests were taken up after ${seconds(tookMs)}`);
  }

  async function databaseNow(): Promise<Date> {
    return (await selectOne<{ now: Date }>(stack.pool, 'select clock_timestamp() as now')).now;
  }

  it('kill -9 of a worker, a web, Redis and PostgreSQL, one after another', async () => {
    let since = performance.now();
    const killedAt = await databaseNow();
    await pick(stack.workers, random).kill();
    await expectServing('worker killed', since);
    await expectRescue(killedAt);

    since = performance.now();
    await pick(stack.webs, random).kill();
    await expectServing('web killed', since);
    await sleep(1500);

    since = performance.now();
    await Promise.all([stack.redis.kill(), expectServing('Redis killed', since)]);
    await sleep(2500);

    since = performance.now();
    await Promise.all([stack.postgres.kill(), expectServing('PostgreSQL killed', since)]);
    await sleep(1500);
    await expectTrueBooks();
  });

  it('SIGTERM of a worker and of a web loses nothing', async () => {
    const stopped = [pick(stack.workers, random), pick(stack.webs, random)];
    const signalledAt = Date.now();
    const stoppedWeb = stack.origins[stack.webs.indexOf(stopped[1] ?? fail('no web'))];
    await Promise.all(
      stopped.map(async (one) => {
        const exit = await one.terminate();
        note(`${one.name} stopped in ${seconds(exit.tookMs)} with code ${exit.code}`);
        expect(exit.code, `exit code of ${one.name}\n${one.logTail()}`).to.equal(0);
        expect(exit.tookMs).to.be.below(STOPPED_WITHIN_MS);
        await until(() => one.isRunning, 5000, `the restart of ${one.name}`);
      }),
    );
    await expectServing('both stopped and started', performance.now());
    await expectTrueBooks();
    // whoever had asked got an answer; who asks a web that is going away is refused
    const cut = load.attempts.filter(
      ({ outcome, web, startedAt }) => outcome === 'lost' && (web !== stoppedWeb || startedAt < signalledAt),
    );
    const failed = load.attempts.filter(({ outcome, status }) => outcome === 'error' && status !== 409);
    expect(
      [...cut, ...failed].map(({ n, kind, model, note: why }) => `#${n} ${kind} ${model} ${why}`),
    ).to.deep.equal([]);
  });

  it('PostgreSQL stopped in good order and started 10 s later', async () => {
    const starts = totalStarts();
    const since = performance.now();
    await stack.postgres.stopFor(10_000);
    await expectServing('PostgreSQL stopped for 10 s', since);
    await sleep(1000);
    await expectTrueBooks();
    expect(totalStarts(), 'processes that had to be started again').to.equal(starts);
  });

  it('a worker frozen for 20 s, whose requests were taken over meanwhile', async () => {
    const frozen = pick(stack.workers, random);
    const since = await databaseNow();
    frozen.signal('SIGSTOP');
    await Promise.all([sleep(20_000), expectRescue(since)]);
    await expectServing('worker frozen', performance.now());
    frozen.signal('SIGCONT');
    note(`${frozen.name} goes on`);
    await sleep(3000);
    await expectTrueBooks();
  });

  function totalStarts(): number {
    return [...stack.webs, ...stack.workers].reduce((sum, { starts }) => sum + starts, 0);
  }
});

describe('chaos: a process without what it needs', () => {
  for (const [name, modulePath] of [
    ['web', 'ingress/index.ts'],
    ['worker', 'workers/index.ts'],
  ] as const) {
    for (const missing of ['DATABASE_URL', 'REDIS_URL']) {
      it(`${name} without ${missing} says so in one line and ends`, async () => {
        const all = { DATABASE_URL: 'postgresql://127.0.0.1:9/none', REDIS_URL: 'redis://127.0.0.1:9' };
        const env = Object.fromEntries(Object.entries(all).filter(([variable]) => variable !== missing));
        const { code, stdout, stderr } = await runToEnd(modulePath, env);
        expect(code).to.equal(1);
        expect(stdout).to.equal('');
        expect(stderr).to.match(new RegExp(`^${name}: .*${missing}.*\\n$`));
      });
    }
  }
});

describe('chaos: a worker that cannot sign pictures', () => {
  const STORES = { DATABASE_URL: 'postgresql://127.0.0.1:9/none', REDIS_URL: 'redis://127.0.0.1:9' };
  for (const [when, env, missing] of [
    ['has nowhere to keep a chain', { DATA_DIR: '/dev/null' }, 'C2PA_CERTIFICATE'],
    ['has a certificate and no key', { C2PA_CERTIFICATE: 'x' }, 'C2PA_PRIVATE_KEY'],
    ['has what is no certificate', { C2PA_CERTIFICATE: 'x', C2PA_PRIVATE_KEY: 'y' }, 'C2PA_CERTIFICATE'],
  ] as const) {
    it(`because it ${when} says so in one line and ends`, async () => {
      const { code, stdout, stderr } = await runToEnd('workers/index.ts', { ...STORES, ...env });
      expect([code, stdout]).to.deep.equal([1, '']);
      expect(stderr).to.match(new RegExp(`^worker: .*${missing}.*\\n$`));
    });
  }
});

function pick<T>(items: readonly T[], random: () => number): T {
  return items[Math.floor(random() * items.length)] ?? fail('nothing to pick from');
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
