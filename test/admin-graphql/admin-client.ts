/** An admin server on a free port over a test database, and a client for it. */
import { randomUUID } from 'node:crypto';
import { after, before } from 'mocha';
import { pino } from 'pino';
import { type ListeningAdminServer, makeAdminServer } from '../../admin-graphql/app.ts';
import type { AdminSettings } from '../../admin-graphql/settings.ts';
import { loadConfig } from '../../core/config.ts';
import { makeSecret, OPERATOR_TOKEN_PREFIX } from '../../core/keys.ts';
import type { Logger } from '../../core/logger.ts';
import {
  makeAccount,
  makeSubmission,
  type Queryable,
  selectOne,
  selectRows,
  settle,
  submit,
  withDatabase,
} from '../helpers/database.ts';

interface GraphqlError {
  readonly message: string;
  readonly path?: readonly string[];
  readonly extensions: { readonly code: string; readonly [name: string]: unknown };
}

export interface GraphqlAnswer<Data> {
  readonly status: number;
  readonly data: Data | null;
  readonly errors: readonly GraphqlError[];
}

export interface Token {
  readonly id: string;
  readonly secret: string;
}

export const JWT_SETTINGS: AdminSettings = {
  jwtSecret: 'a secret of more than thirty-two bytes',
  jwksUrl: undefined,
  jwtIssuer: 'issuer',
  jwtAudience: 'audience',
};

export async function makeToken(db: Queryable, role: 'reader' | 'operator'): Promise<Token> {
  const { secret, hash } = makeSecret(OPERATOR_TOKEN_PREFIX);
  const { id } = await selectOne<{ id: string }>(
    db,
    'select app.issue_operator_token($1, $2, $3, $4) as id',
    [`Ada ${role}`, role, hash, 'test'],
  );
  return { id, secret };
}

/** Lends the surrounding `describe` a server, a token of each role and what the server has logged. */
export function withAdmin(settings: AdminSettings = JWT_SETTINGS) {
  const database = withDatabase();
  const log: string[] = [];
  let server: ListeningAdminServer | undefined;
  let tokens: { reader: Token; operator: Token } | undefined;

  before('start the admin server', async () => {
    const logger: Logger = pino({ level: 'error' }, { write: (line: string) => void log.push(line) });
    const made = await makeAdminServer({
      config: loadConfig({}),
      logger,
      databaseUrl: database.url,
      settings,
    });
    server = await made.listen(0, '127.0.0.1');
    tokens = {
      reader: await makeToken(database.pool, 'reader'),
      operator: await makeToken(database.pool, 'operator'),
    };
  });
  after('stop the admin server', async () => {
    await server?.close();
  });

  const url = (): string => `http://127.0.0.1:${server?.port}`;

  /** As the operator unless another secret is given; null: without any. */
  async function ask<Data = Record<string, unknown>>(
    query: string,
    variables: Readonly<Record<string, unknown>> = {},
    secret: string | null = tokens?.operator.secret ?? '',
  ): Promise<GraphqlAnswer<Data>> {
    const response = await fetch(`${url()}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(secret === null ? {} : { authorization: `Bearer ${secret}` }),
      },
      body: JSON.stringify({ query, variables }),
    });
    const body = (await response.json()) as { data?: Data | null; errors?: GraphqlError[] };
    return { status: response.status, data: body.data ?? null, errors: body.errors ?? [] };
  }

  /** The data of an operation that must succeed. */
  async function must<Data = Record<string, unknown>>(
    query: string,
    variables: Readonly<Record<string, unknown>> = {},
  ): Promise<Data> {
    const { data, errors } = await ask<Data>(query, variables);
    if (data === null || errors.length > 0) throw new Error(JSON.stringify(errors));
    return data;
  }

  return {
    database,
    log,
    ask,
    must,
    get url() {
      return url();
    },
    get tokens() {
      if (tokens === undefined) throw new Error('the tokens exist only while tests run');
      return tokens;
    },
  };
}

/** A job that has used up its attempts. Returns its number. */
export async function makeFailedJob(db: Queryable, task = `test/${randomUUID()}`): Promise<number> {
  const { id } = await selectOne<{ id: number }>(
    db,
    `select id from graphile_worker.add_job($1, '{"prompt": "private"}')`,
    [task],
  );
  await db.query(`select graphile_worker.permanently_fail_jobs(array[$1::bigint], 'boom')`, [id]);
  return id;
}

export interface AuditRow {
  readonly id: number;
  readonly actor: string;
  readonly action: string;
  readonly target_id: string;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
}

export async function lastAudit(db: Queryable): Promise<AuditRow | undefined> {
  const rows = await selectRows<AuditRow>(db, 'select * from app.audit_log order by id desc limit 1');
  return rows[0];
}

export interface TestRequest {
  readonly accountId: string;
  readonly requestId: string;
}

/** A queued request that holds 100 of its account's 1,000 granted AP. */
export async function makeOpenRequest(db: Queryable): Promise<TestRequest> {
  const accountId = await makeAccount(db, { grantedAp: 1000 });
  const submission = makeSubmission(accountId);
  const [outcome] = await submit(db, [submission]);
  if (outcome?.outcome !== 'accepted') throw new Error(`the request was not accepted: ${outcome?.outcome}`);
  return { accountId, requestId: submission.id };
}

/** A finished request of an account that had 1,000 granted AP. */
export async function makeChargedRequest(db: Queryable, costAp: number): Promise<TestRequest> {
  const request = await makeOpenRequest(db);
  await settle(db, [{ request_id: request.requestId, state: 'succeeded', cost_ap: costAp }]);
  return request;
}
