/**
 * The whole service in this process for a test file: a database of its own, ingresses and workers on ephemeral ports, a bus in
 * memory (or Redis), and a mock upstream to which its models are routed. What the service logs as an error fails the file
 * unless the test takes it (`takeErrors`).
 *
 *   const service = withTestService({ config: { edgeWaitSeconds: 1 } });
 *   const caller = await service.makeCaller({ balanceAp: 1000 });
 *   const answer = await service.post('/v1/chat/completions', { secret: caller.secret, body: chatBody() });
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { after, before } from 'mocha';
import { pino } from 'pino';
import { makeAssetStore } from '../../core/assets/make-store.ts';
import type { AssetStore } from '../../core/assets/store.ts';
import { type Config, loadConfig } from '../../core/config.ts';
import type { Pool } from '../../core/database.ts';
import type { Logger } from '../../core/logger.ts';
import { type Bus, makeLocalBus, makeRedisBus } from '../../core/relay/bus.ts';
import type { ShutdownStep } from '../../core/shutdown.ts';
import { startIngress } from '../../ingress/server.ts';
import { startWorker } from '../../workers/worker.ts';
import {
  makeAccount,
  makeKey,
  makeModel,
  makeTestDatabase,
  selectOne,
  selectRows,
  type TestAccountOptions,
  type TestKeyOptions,
} from './database.ts';
import { type MockUpstream, startMockUpstream } from './mock-upstream.ts';

export interface TestServiceOptions {
  readonly config?: Partial<Config>;
  /** Of a Redis: the bus and the limits run over it. Else all in memory. */
  readonly redisUrl?: string | undefined;
  /** Ingresses; 1 unless told otherwise. */
  readonly webs?: number;
  readonly workers?: number;
  /** Called with each line logged as a warning. */
  readonly onWarning?: (line: Record<string, unknown>) => void;
  /** For buses that lose frames on purpose; called once for each ingress ('web') and each worker. */
  readonly wrapBus?: (bus: Bus, owner: 'web' | 'worker') => Bus;
}

/** Prices of both models: a prompt token costs 1 AP, an answer's token 2 AP. */
export const AP_IN_PER_1K = 1000;
export const AP_OUT_PER_1K = 2000;
/** What the mock's default answer costs: 9 tokens in, 5 out. */
export const DEFAULT_COST_AP = 9 + 2 * 5;
/** Routed to the mock upstream alone. */
export const MODEL = 'chat-test';
/** Routed to the mock upstream first, and to `backup` when that fails. */
export const MODEL_WITH_BACKUP = 'chat-backed';
export const MAX_TOKENS = 4096;

export interface TestCaller {
  readonly secret: string;
  readonly accountId: string;
  readonly keyId: string;
}

export type CallerOptions = Omit<TestAccountOptions, 'grantedAp' | 'purchasedAp'> &
  TestKeyOptions & {
    /** 1,000,000 unless told otherwise. 0: the account has no balance row. */
    readonly balanceAp?: number;
    /** How it came by its balance. */
    readonly fundedBy?: 'purchase' | 'grant';
  };

export interface CallOptions {
  readonly secret?: string;
  /** An object goes as JSON, a string and bytes as they are. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Which ingress; 0 unless told otherwise. */
  readonly web?: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into bodies of every shape
  readonly json: any;
}

export interface Balance {
  readonly balanceAp: number;
  readonly heldAp: number;
  readonly purchasedAp: number;
}

export interface TestService {
  readonly config: Config;
  readonly pool: Pool;
  readonly databaseUrl: string;
  /** In a folder that goes with the service. */
  readonly store: AssetStore;
  readonly upstream: MockUpstream;
  /** The second route of MODEL_WITH_BACKUP. */
  readonly backup: MockUpstream;
  /** Origins of the ingresses. */
  readonly urls: readonly string[];
  makeCaller(options?: CallerOptions): Promise<TestCaller>;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  post(path: string, options?: CallOptions): Promise<Answer>;
  get(path: string, options?: CallOptions): Promise<Answer>;
  /** A chat completion by MODEL; `body` is laid over the default body. */
  chat(caller: Pick<TestCaller, 'secret'>, body?: object, options?: CallOptions): Promise<Answer>;
  balanceOf(accountId: string): Promise<Balance>;
  /** The charges on an account's ledger, oldest first, as positive AP. */
  chargesOf(accountId: string): Promise<number[]>;
  /** Fails when the books do not agree with themselves. */
  ledgerIsClean(): Promise<void>;
  /** Everything a request could leave behind, for comparison before and after. */
  traces(): Promise<Record<string, unknown>>;
  /** The error lines logged since the last call. */
  takeErrors(): string[];
  stop(): Promise<void>;
}

export function chatBody(changes: object = {}): Record<string, unknown> {
  return { model: MODEL, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 100, ...changes };
}

const WARN_LEVEL = pino.levels.values.warn;

/** About half a second. The caller stops it. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const errors: string[] = [];
  const logger: Logger = pino(
    { level: options.onWarning === undefined ? 'error' : 'warn' },
    {
      write(text) {
        const line = JSON.parse(text) as Record<string, unknown>;
        if (line.level === WARN_LEVEL) options.onWarning?.(line);
        else errors.push(text);
      },
    },
  );
  const dataDir = await mkdtemp(join(tmpdir(), 'svc-data-'));
  const config: Config = {
    ...loadConfig({}),
    port: 0,
    dataDir,
    // each test that is about one of these says so
    initialGrantAp: 0,
    cardRequiredFrom: new Date('9999-01-01T00:00:00Z'),
    redisUrl: options.redisUrl,
    ...options.config,
  };
  const store = await makeAssetStore(config);
  const database = await makeTestDatabase();
  const [upstream, backup] = await Promise.all([startMockUpstream(), startMockUpstream()]);
  await makeRoutedModels(database.pool, upstream, backup);

  const webSteps: ShutdownStep[] = [];
  const workerSteps: ShutdownStep[] = [];
  const busSteps: ShutdownStep[] = [];
  const local = makeLocalBus();
  const makeBus = async (owner: 'web' | 'worker'): Promise<Bus> => {
    const bus = options.redisUrl === undefined ? local : await makeRedisBus(options.redisUrl, () => {});
    busSteps.push({ name: 'bus', run: () => bus.close() });
    return options.wrapBus?.(bus, owner) ?? bus;
  };
  const databaseUrl = database.url;
  for (let index = 0; index < (options.workers ?? 1); index += 1) {
    const bus = await makeBus('worker');
    const worker = await startWorker({ config, databaseUrl, bus, store, logger, env: {} });
    workerSteps.push(...worker.shutdown);
  }
  const urls: string[] = [];
  for (let index = 0; index < (options.webs ?? 1); index += 1) {
    const bus = await makeBus('web');
    const ingress = await startIngress({ config, databaseUrl, bus, store, logger });
    webSteps.push(...ingress.shutdown);
    urls.push(`http://127.0.0.1:${ingress.port}`);
  }

  const { pool } = database;
  const call: TestService['call'] = (method, path, call = {}) =>
    send(urls[call.web ?? 0] ?? '', method, path, call);
  return {
    config,
    pool,
    databaseUrl,
    store,
    upstream,
    backup,
    urls,
    makeCaller: (caller) => makeCaller(pool, caller),
    call,
    post: (path, call_) => call('POST', path, call_),
    get: (path, call_) => call('GET', path, call_),
    chat: ({ secret }, body = {}, call_ = {}) =>
      call('POST', '/v1/chat/completions', { secret, body: chatBody(body), ...call_ }),
    balanceOf: (accountId) =>
      selectOne<Balance & Record<string, number>>(
        pool,
        `select balance_ap as "balanceAp", held_ap as "heldAp", purchased_ap as "purchasedAp"
          from app.balances where account_id = $1`,
        [accountId],
      ),
    chargesOf: async (accountId) =>
      (
        await selectRows<{ ap: number }>(
          pool,
          `select -amount_ap as ap from app.ledger_entries where account_id = $1 and kind = 'charge' order by id`,
          [accountId],
        )
      ).map((row) => row.ap),
    ledgerIsClean: () => ledgerIsClean(pool),
    traces: () => tracesOf(pool),
    takeErrors: () => errors.splice(0),
    async stop() {
      // calls that hang upstream end with their sockets, else the stop would wait for them
      await Promise.all([upstream.close(), backup.close()]);
      for (const step of [...webSteps, ...workerSteps, ...busSteps]) await step.run();
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
      await database.drop();
    },
  };
}

/** Lends the surrounding `describe` a service: started before its first test, stopped after its last. */
export function withTestService(options: TestServiceOptions | (() => TestServiceOptions) = {}): TestService {
  let service: TestService | undefined;
  before('start the service', async () => {
    service = await startTestService(typeof options === 'function' ? options() : options);
  });
  after('stop the service', async function () {
    this.timeout(30_000);
    const stopping = service;
    service = undefined;
    await stopping?.ledgerIsClean();
    await stopping?.stop();
    expect(stopping?.takeErrors() ?? [], 'logged errors').to.deep.equal([]);
  });
  return new Proxy({} as TestService, {
    get(_target, name) {
      if (service === undefined) throw new Error('the service exists only while tests run');
      return Reflect.get(service, name) as unknown;
    },
  });
}

async function makeRoutedModels(pool: Pool, upstream: MockUpstream, backup: MockUpstream): Promise<void> {
  const price = { apInPer1k: AP_IN_PER_1K, apOutPer1k: AP_OUT_PER_1K, maxTokens: MAX_TOKENS };
  const provider = { name: 'mock', kind: 'openai', baseUrl: upstream.baseUrl } as const;
  await makeModel(pool, { id: MODEL, provider, ...price });
  await makeModel(pool, { id: MODEL_WITH_BACKUP, provider, ...price });
  await pool.query(`insert into app.providers (name, kind, base_url) values ('backup', 'openai', $1)`, [
    backup.baseUrl,
  ]);
  await pool.query(
    `insert into app.routes (model_id, provider, upstream_model, priority) values ($1, 'backup', $1, 1)`,
    [MODEL_WITH_BACKUP],
  );
}

async function makeCaller(pool: Pool, options: CallerOptions = {}): Promise<TestCaller> {
  const { balanceAp = 1_000_000, fundedBy = 'purchase', ...rest } = options;
  const accountId = await makeAccount(pool, {
    ...rest,
    ...(fundedBy === 'purchase' ? { purchasedAp: balanceAp } : { grantedAp: balanceAp }),
  });
  return { accountId, ...(await makeKey(pool, accountId, rest)) };
}

async function send(origin: string, method: string, path: string, options: CallOptions): Promise<Answer> {
  const { body, secret } = options;
  const response = await fetch(origin + path, {
    method,
    headers: {
      ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    ...(body === undefined
      ? {}
      : { body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    redirect: 'manual',
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parsed(text) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function ledgerIsClean(pool: Pool): Promise<void> {
  const { problems, drift_ap: drift } = await selectOne<{ problems: unknown[]; drift_ap: number }>(
    pool,
    'select problems, drift_ap from app.ledger_check()',
  );
  expect(problems, 'ledger_check').to.deep.equal([]);
  expect(drift, 'drift').to.equal(0);
}

async function tracesOf(pool: Pool): Promise<Record<string, unknown>> {
  return selectOne(
    pool,
    `select
      (select count(*) from app.requests) as requests,
      (select count(*) from app.holds) as holds,
      -- the engine takes a job off the queue a moment after its request has ended: those do not count
      (select count(*) from graphile_worker._private_jobs j
        join graphile_worker._private_tasks t on t.id = j.task_id
        left join app.requests q on q.id = substring(j.payload::text from '"id" : "([0-9a-f-]{36})"')::uuid
        where t.identifier not like 'maintenance/%' and q.finished_at is null) as jobs,
      (select count(*) from app.request_inputs) as inputs,
      (select count(*) from app.assets where state = 'writing') as unstored_assets,
      (select count(*) from app.assets where state = 'stored') as stored_assets,
      (select count(*) from app.request_results) as results,
      (select count(*) from app.idempotency_keys) as idempotency_keys,
      (select count(*) from app.ledger_entries) as ledger_entries,
      (select coalesce(sum(used_ap), 0)::bigint from app.cap_usage) as cap_used_ap,
      (select coalesce(json_agg(b order by b.account_id), '[]') from app.balances b) as balances`,
  );
}

/** Looks again, every few milliseconds, until `look` no longer throws; its last failure is the test's. */
export async function eventually<T>(look: () => Promise<T> | T, withinMs = 5000): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    try {
      return await look();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

/** A promise with its key outside. */
export function makeGate(): { readonly passed: Promise<void>; readonly open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: () => resolve() };
}
