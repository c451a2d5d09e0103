/**
 * PostgreSQL pools. Each process drops to a role of its own where the roles exist (sql/migrations/0001), so that a fault in
 * one cannot do what only the other may. Queries stand in the data files of each area, never here.
 */
import pg from 'pg';

export type Role = 'app_ingress' | 'app_worker' | 'operator_reader' | 'operator';
export type Pool = pg.Pool;

export interface PoolOptions {
  readonly databaseUrl: string;
  /** Undefined: the database's owner. */
  readonly role?: Role | undefined;
  readonly applicationName: string;
  readonly maxConnections: number;
  /** Milliseconds after which PostgreSQL itself ends a statement. */
  readonly statementTimeoutMs?: number;
  /** Milliseconds a statement waits for any one lock (55P03). */
  readonly lockTimeoutMs?: number;
  readonly onError: (error: Error) => void;
}

/** Functions keep the plans of their first calls on a connection; tables grow: after this long they are made anew. */
const MAX_LIFETIME_SECONDS = 600;
/** A session that is left in a transaction (its process hangs, its machine is gone) would hold a balance's lock for ever. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;

// Amounts are bigint in SQL and safe integers here: 2^53 AP is 900 billion dollars.
pg.types.setTypeParser(pg.types.builtins.INT8, (text) => {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('an integer from the database is beyond 2^53');
  return value;
});

// a third of the driver's own time a value; what JavaScript has no word for (infinity, BC) is the driver's
const parseTimestamp = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ) as (text: string) => Date;
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? parseTimestamp(text) : date;
});

/** A pool whose connections carry the role. Connecting is lazy but for one look at whether the role exists. */
export async function makePool(options: PoolOptions): Promise<Pool> {
  const role =
    options.role !== undefined && (await canUseRole(options.databaseUrl, options.role))
      ? options.role
      : undefined;
  const pool = new pg.Pool({
    connectionString: options.databaseUrl,
    application_name: options.applicationName,
    max: options.maxConnections,
    connectionTimeoutMillis: 5000,
    idleTimeoutMillis: 60_000,
    maxLifetimeSeconds: MAX_LIFETIME_SECONDS,
    keepAlive: true,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    ...(options.statementTimeoutMs === undefined ? {} : { statement_timeout: options.statementTimeoutMs }),
    ...(options.lockTimeoutMs === undefined ? {} : { lock_timeout: options.lockTimeoutMs }),
    ...(role === undefined ? {} : { options: `-c role=${role}` }),
  });
  // an idle connection broke: the next query opens another; one in use also fails its query
  pool.on('error', options.onError);
  pool.on('connect', (client) => client.on('error', options.onError));
  return pool;
}

async function canUseRole(databaseUrl: string, role: Role): Promise<boolean> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5000 });
  client.on('error', () => {}); // reported by the query
  await client.connect();
  try {
    const { rows } = await client.query<{ usable: boolean | null }>(
      'select pg_has_role(current_user, to_regrole($1), $2) as usable',
      [role, 'member'],
    );
    return rows[0]?.usable === true;
  } finally {
    await client.end();
  }
}

/** Runs `work` in one transaction on one connection. */
export async function withTransaction<T>(
  pool: Pool,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

const UNCERTAIN_SQLSTATE_CLASSES = ['08', '57', '53', '58'];
/** A lock or the statement itself took too long: PostgreSQL's own answer, on a connection that goes on. */
const TIMEOUT_SQLSTATES = ['55P03', '57014'];
const TRANSIENT_SQLSTATES = ['40001', '40P01', ...TIMEOUT_SQLSTATES];

/** The code PostgreSQL gave the error; undefined where the error is not PostgreSQL's. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' &&
    /^[0-9A-Z]{5}$/.test(code) &&
    error instanceof Error &&
    !('syscall' in error)
    ? code
    : undefined;
}

/** Whether a lock was not to be had in time, or the statement ran out of time: nothing of it was committed. */
export function isTimeoutError(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && TIMEOUT_SQLSTATES.includes(state);
}

/**
 * Whether the database could not be reached or lost the connection: the statement may or may not have been committed.
 * Anything else is PostgreSQL's own answer, or the driver's.
 */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error) || isTimeoutError(error)) return false;
  const state = sqlStateOf(error);
  if (state !== undefined) return UNCERTAIN_SQLSTATE_CLASSES.includes(state.slice(0, 2));
  return (
    typeof (error as { code?: unknown }).code === 'string' ||
    /connection terminated|timeout exceeded when trying to connect|client has encountered a connection error|not queryable/i.test(
      error.message,
    )
  );
}

const NEVER_SENT_CODES = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', '57P03'];

/** Of a connection error: there was no connection to send the statement on, so it was certainly not committed. */
export function wasNeverSent(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (
    (typeof code === 'string' && NEVER_SENT_CODES.includes(code)) ||
    /timeout exceeded when trying to connect/i.test(String(message))
  );
}

/** Whether the same statement may succeed when run again: deadlock, serialisation, lock not available, out of time. */
export function isTransientError(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && TRANSIENT_SQLSTATES.includes(state);
}
