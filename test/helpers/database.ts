/**
 * A database of a test file's own, cloned from the run's template (test/helpers/hooks.ts), and the few rows most tests
 * begin with. Money is moved by the ledger functions alone, as in the service itself.
 */
import { randomUUID } from 'node:crypto';
import { before } from 'mocha';
import pg from 'pg';
import { v7 } from 'uuid';
import { makePool, type Pool } from '../../core/database.ts';
import { makeSecret } from '../../core/keys.ts';

export const TEMPLATE_DATABASE = 'svc_template';
/** PostgreSQL's own, in which there is nothing. */
export const EMPTY_DATABASE = 'template0';

export interface TestDatabase {
  readonly url: string;
  /** As the database's owner; use `withRole` for another. */
  readonly pool: Pool;
  drop(): Promise<void>;
}

/** About 50 ms. The caller drops it. `template`: what it is a copy of. */
export async function makeTestDatabase(template = TEMPLATE_DATABASE): Promise<TestDatabase> {
  const templateUrl = process.env.SVC_TEST_POSTGRES_URL;
  if (templateUrl === undefined) throw new Error('no PostgreSQL: run the tests with mocha and .mocharc.yaml');
  const name = `svc_${randomUUID().replaceAll('-', '')}`;
  await administer(templateUrl, `create database ${name} template ${template}`);
  const url = replaceDatabase(templateUrl, name);
  const pool = await makePool({
    databaseUrl: url,
    applicationName: 'svc-test',
    maxConnections: 20,
    onError: () => {}, // `drop` ends connections from the server's side
  });
  return {
    url,
    pool,
    async drop() {
      await pool.end();
      await administer(templateUrl, LET_GO, name);
      await administer(templateUrl, `drop database if exists ${name} with (force)`);
    },
  };
}

/** Lends the surrounding `describe` a database: made before its first test, dropped after its last. */
export function withDatabase(template = TEMPLATE_DATABASE): Pick<TestDatabase, 'url' | 'pool'> {
  let database: TestDatabase | undefined;
  const lent = (): TestDatabase => {
    if (database === undefined) throw new Error('the database exists only while tests run');
    return database;
  };
  before('clone a database', async function () {
    database = await makeTestDatabase(template);
    // Added now, so that it comes after every `after` of the file: what uses the database stops before it goes.
    this.test?.parent?.afterAll('drop the database', async () => {
      await database?.drop();
      database = undefined;
    });
  });
  return {
    get url() {
      return lent().url;
    },
    get pool() {
      return lent().pool;
    },
  };
}

/**
 * Waits, two seconds at most, until the server has seen its clients leave: a client that is closing and is thrown out by the drop
 * may tell so after its test has ended.
 */
const LET_GO = `do $$
begin
  for turn in 1..200 loop
    exit when not exists (select from pg_stat_activity where datname = '%');
    perform pg_sleep(0.01);
    perform pg_stat_clear_snapshot();
  end loop;
end
$$`;

async function administer(templateUrl: string, text: string, name = ''): Promise<void> {
  const statement = text.replace('%', name);
  const client = new pg.Client({ connectionString: replaceDatabase(templateUrl, 'postgres') });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

function replaceDatabase(url: string, name: string): string {
  return url.replace(/\/[^/]*$/, `/${name}`);
}

/** Runs `work` on one connection whose transaction is rolled back: what it did never was. */
export async function withRollback<T>(pool: Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    return await work(client);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

export type Queryable = Pick<pg.ClientBase, 'query'> | Pick<Pool, 'query'>;

/** All rows of a query whose shape the caller knows. */
export async function selectRows<Row extends pg.QueryResultRow>(
  db: Queryable,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  return (await db.query<Row>(text, [...values])).rows;
}

/** The only row of a query; anything else is the test's mistake. */
export async function selectOne<Row extends pg.QueryResultRow>(
  db: Queryable,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row> {
  const rows = await selectRows<Row>(db, text, values);
  const [row] = rows;
  if (row === undefined || rows.length > 1) throw new Error(`${rows.length} rows instead of one: ${text}`);
  return row;
}

export interface TestAccountOptions {
  readonly name?: string;
  readonly kind?: 'personal' | 'enterprise';
  readonly subject?: string;
  readonly language?: 'en' | 'ja';
  readonly hasCard?: boolean;
  readonly createdAt?: Date;
  /** AP granted by an operator, which counts as granted, not bought. */
  readonly grantedAp?: number;
  readonly purchasedAp?: number;
}

/** An account a year old, with what it was credited; without credits it has no balance row yet. */
export async function makeAccount(db: Queryable, options: TestAccountOptions = {}): Promise<string> {
  const { id } = await selectOne<{ id: string }>(
    db,
    `insert into app.accounts (name, kind, subject, language, card_on_file, created_at)
       values ($1, $2, $3, $4, $5, coalesce($6, now() - interval '1 year')) returning id`,
    [
      options.name ?? 'Test account',
      options.kind ?? 'personal',
      options.subject ?? null,
      options.language ?? null,
      options.hasCard ?? false,
      options.createdAt ?? null,
    ],
  );
  if (options.grantedAp) await credit(db, id, options.grantedAp, 'grant');
  if (options.purchasedAp) await credit(db, id, options.purchasedAp, 'purchase');
  return id;
}

export async function credit(
  db: Queryable,
  accountId: string,
  ap: number,
  kind: 'purchase' | 'grant' | 'adjustment',
): Promise<{ readonly entry_id: number; readonly balance_ap: number }> {
  return await selectOne(db, 'select * from app.credit_account($1, $2, $3, $4, $5)', [
    accountId,
    ap,
    kind,
    'test',
    'test',
  ]);
}

export interface TestKeyOptions {
  readonly prefix?: 'svc_live_' | 'svc_test_' | 'svc_beta_';
  readonly scopes?: readonly string[];
  readonly allowedModels?: readonly string[];
  readonly capPerRequestAp?: number;
  readonly capDailyAp?: number;
  readonly capMonthlyAp?: number;
  readonly ratePerMinute?: number;
  readonly expiresAt?: Date;
}

/** A key and its secret, with every scope and a rate no test reaches unless told otherwise. */
export async function makeKey(
  db: Queryable,
  accountId: string,
  options: TestKeyOptions = {},
): Promise<{ readonly keyId: string; readonly secret: string }> {
  const prefix = options.prefix ?? 'svc_live_';
  const { secret, hash, hint } = makeSecret(prefix);
  const { id } = await selectOne<{ id: string }>(
    db,
    'select app.issue_key($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) as id',
    [
      accountId,
      hash,
      prefix,
      hint,
      'Test key',
      options.scopes ?? null,
      options.allowedModels ?? null,
      options.capPerRequestAp ?? null,
      options.capDailyAp ?? null,
      options.capMonthlyAp ?? null,
      options.ratePerMinute ?? 1_000_000,
      options.expiresAt ?? null,
      'test',
    ],
  );
  return { keyId: id, secret };
}

export interface TestModelOptions {
  readonly id?: string;
  readonly maxTokens?: number;
  readonly contextTokens?: number;
  readonly apInPer1k?: number;
  readonly apOutPer1k?: number;
  /** Routed to this provider, which is made when missing. */
  readonly provider?: {
    readonly name: string;
    readonly kind: 'openai' | 'sandbox';
    readonly baseUrl?: string;
  };
}

/** A chat model with its price and one route. */
export async function makeModel(
  db: Queryable,
  options: TestModelOptions = {},
): Promise<{ readonly modelId: string; readonly priceId: number }> {
  const modelId = options.id ?? `chat-${randomUUID().slice(0, 8)}`;
  const provider = options.provider ?? { name: 'sandbox', kind: 'sandbox' };
  await db.query(
    `insert into app.providers (name, kind, base_url) values ($1, $2, $3) on conflict (name) do nothing`,
    [provider.name, provider.kind, provider.baseUrl ?? null],
  );
  await db.query(
    `insert into app.models (id, type, max_tokens, context_tokens) values ($1, 'chat', $2, $3)`,
    [modelId, options.maxTokens ?? 4096, options.contextTokens ?? 128_000],
  );
  await db.query(`insert into app.routes (model_id, provider, upstream_model) values ($1, $2, $1)`, [
    modelId,
    provider.name,
  ]);
  const { id } = await selectOne<{ id: number }>(
    db,
    `select id from app.publish_price($1, 'per_1k_tokens', $2, $3, null, null, null, null, 'test')`,
    [modelId, options.apInPer1k ?? 25, options.apOutPer1k ?? 100],
  );
  return { modelId, priceId: id };
}

/** One app.submission, in the names of its SQL type. */
export interface Submission {
  readonly id: string;
  readonly account_id: string;
  readonly key_id: string;
  readonly area: string;
  readonly task: string;
  readonly model_id: string;
  readonly price_id: number;
  readonly is_stream: boolean;
  readonly ingress_id: string | null;
  readonly fixed_milli_ap: number;
  readonly unit_milli_ap: number;
  readonly min_units: number;
  readonly max_units: number;
  readonly timeout_seconds: number;
  readonly idempotency_key: string | null;
  readonly body_sha256: string | null;
  readonly cap_per_request_ap: number | null;
  readonly cap_daily_ap: number | null;
  readonly cap_monthly_ap: number | null;
  readonly grant_daily_cap_ap: number | null;
  readonly is_grant_allowed: boolean;
  readonly needs_purchased: boolean;
}

/** A submission that holds exactly 100 AP, from a key of its own without caps, unless told otherwise. */
export function makeSubmission(
  accountId: string,
  changes: Partial<Submission> & { readonly hold_ap?: number } = {},
): Submission {
  const { hold_ap: holdAp = 100, ...fields } = changes;
  return {
    id: v7(),
    account_id: accountId,
    key_id: randomUUID(),
    area: 'llm',
    task: 'chat/completions',
    model_id: 'chat-test',
    price_id: 1,
    is_stream: false,
    ingress_id: null,
    fixed_milli_ap: holdAp * 1000,
    unit_milli_ap: 0,
    min_units: 1,
    max_units: 1,
    timeout_seconds: 600,
    idempotency_key: null,
    body_sha256: null,
    cap_per_request_ap: null,
    cap_daily_ap: null,
    cap_monthly_ap: null,
    grant_daily_cap_ap: null,
    is_grant_allowed: true,
    needs_purchased: false,
    ...fields,
  };
}

/** One row of app.submit_requests. */
export interface SubmitOutcome {
  readonly n: number;
  readonly outcome: string;
  readonly hold_ap: number | null;
  readonly units: number | null;
  readonly required_ap: number;
  readonly available_ap: number;
  readonly held_ap: number;
  readonly cap_ap: number | null;
  readonly resets_at: Date | null;
  readonly other_request_id: string | null;
}

export interface SubmitOptions {
  /** The job data of the same positions; `{}` where missing. */
  readonly inputs?: readonly unknown[];
  readonly initialGrantAp?: number;
}

/** One batch through app.submit_requests. The initial grant is off unless it is asked for. */
export async function submit(
  db: Queryable,
  submissions: readonly Submission[],
  options: SubmitOptions = {},
): Promise<SubmitOutcome[]> {
  return await selectRows<SubmitOutcome>(db, 'select * from app.submit_requests($1, $2, $3)', [
    JSON.stringify(submissions.map((submission, index) => ({ n: index + 1, ...submission }))),
    JSON.stringify(submissions.map((_, index) => options.inputs?.[index] ?? {})),
    options.initialGrantAp ?? 0,
  ]);
}

/** One app.settlement, in the names of its SQL type. */
export interface Settlement {
  readonly request_id: string;
  readonly state: 'succeeded' | 'failed' | 'cancelled' | 'expired';
  readonly cost_ap?: number;
  readonly usage?: unknown;
  readonly provider?: string;
  readonly error_code?: string;
  readonly error_details?: unknown;
  readonly started_at?: string;
  readonly result_kind?: 'json' | 'events';
  readonly result?: string;
  /** Each in the names of app.asset_file. */
  readonly assets?: readonly object[];
  readonly cache_key?: string;
  readonly input_is_inline?: boolean;
}

/** One row of app.settle_requests and app.cancel_request. */
export interface SettleOutcome {
  readonly request_id: string;
  readonly is_settled: boolean;
  readonly state: string;
  readonly cost_ap: number;
}

export async function settle(db: Queryable, settlements: readonly Settlement[]): Promise<SettleOutcome[]> {
  return await selectRows<SettleOutcome>(db, 'select * from app.settle_requests($1, $2)', [
    JSON.stringify(settlements),
    settlements.map((settlement) => settlement.request_id).sort(),
  ]);
}

/** Resolves when a statement with these words waits for a lock. */
export async function waitUntilBlocked(db: Queryable, words: string): Promise<void> {
  for (;;) {
    const waiting = await selectRows(
      db,
      `select from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like '%' || $1 || '%'`,
      [words],
    );
    if (waiting.length > 0) return;
  }
}
