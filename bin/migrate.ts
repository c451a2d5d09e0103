/**
 * Brings a database up to date: the queue engine's tables, our migrations in order, then every function file and the grants,
 * which are applied whole each time. One migrator at a time, guarded by an advisory lock; safe to run again. Ours is one
 * transaction: who calls a function meanwhile finds it and the tables below it both as they were, or both as they are now.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Logger, runMigrations } from 'graphile-worker';
import { runner } from 'node-pg-migrate';
import pg from 'pg';

const SQL_DIR = join(import.meta.dirname, '..', 'sql');
const LOCK = "select pg_advisory_lock(hashtext('svc.migrate'))";
const UNLOCK = "select pg_advisory_unlock(hashtext('svc.migrate'))";
const TRANSACTION_COMMAND = /^\s*(?:begin|commit|rollback)\s*;?\s*$/i;

const SILENT_LOGGER = new Logger(() => () => {});

export interface MigrationReport {
  readonly migrations: readonly string[];
  /** What the database said (warnings: roles that could not be made). */
  readonly warnings: readonly string[];
}

export async function migrate(databaseUrl: string): Promise<MigrationReport> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'svc-release' });
  const warnings: string[] = [];
  client.on('notice', (notice) => {
    if (notice.severity === 'WARNING' && notice.message !== undefined) warnings.push(notice.message);
  });
  await client.connect();
  try {
    await client.query(LOCK);
    await runMigrations({ connectionString: databaseUrl, logger: SILENT_LOGGER });
    await client.query('begin');
    const done = await runner({
      dbClient: withoutTransactions(client),
      dir: join(SQL_DIR, 'migrations'),
      direction: 'up',
      schema: 'public',
      migrationsSchema: 'public',
      migrationsTable: 'svc_migrations',
      checkOrder: true,
      noLock: true,
      singleTransaction: true,
      log: () => {},
    });
    // SQL functions may name others that come later in the alphabet
    await client.query('set local check_function_bodies = off');
    for (const file of await sqlFiles(join(SQL_DIR, 'functions'))) await applyFile(client, file);
    await applyFile(client, join(SQL_DIR, 'grants.sql'));
    await client.query('commit');
    await client.query('select app.maintain_partitions()');
    await client.query(UNLOCK);
    return { migrations: done.map((migration) => migration.name), warnings };
  } finally {
    await client.end();
  }
}

/** The same session; what would begin or end a transaction is left out. */
function withoutTransactions(client: pg.Client): pg.Client {
  const session: pg.Client = Object.create(client);
  const query = async (statement: string | pg.QueryConfig, values?: unknown[]): Promise<unknown> => {
    const text = typeof statement === 'string' ? statement : statement.text;
    return TRANSACTION_COMMAND.test(text) ? undefined : await client.query(statement, values);
  };
  session.query = query as pg.Client['query'];
  return session;
}

/** Every function file, in the order of their paths. */
async function sqlFiles(dir: string): Promise<string[]> {
  const names = await readdir(dir, { recursive: true });
  return names
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => join(dir, name));
}

async function applyFile(client: pg.Client, file: string): Promise<void> {
  try {
    await client.query(await readFile(file, 'utf8'));
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}`, { cause: error });
  }
}
