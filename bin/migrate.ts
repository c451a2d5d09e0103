/**
 * Brings a database up to date: the queue engine's tables, our migrations in order, then every function file and the grants,
 * which are applied whole each time. One migrator at a time, guarded by an advisory lock; safe to run again.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Logger, runMigrations } from 'graphile-worker';
import { runner } from 'node-pg-migrate';
import pg from 'pg';

const SQL_DIR = join(import.meta.dirname, '..', 'sql');
const LOCK = "select pg_advisory_lock(hashtext('svc.migrate'))";
const UNLOCK = "select pg_advisory_unlock(hashtext('svc.migrate'))";

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
    const done = await runner({
      dbClient: client,
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
    await client.query('begin');
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
