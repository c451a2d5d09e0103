/**
 * The database of the command line: DATABASE_URL, else the embedded database that `npm start` keeps in DATA_DIR.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../core/config.ts';
import type { Pool } from '../../core/database.ts';
import { describeDatabaseError } from '../../core/database-errors.ts';
import { Failure } from './failure.ts';

/** Lends a connection to `work`. Fails with one line when there is no database, or not ours. */
export async function withDatabase<T>(config: Config, work: (pool: Pool) => Promise<T>): Promise<T> {
  const databaseUrl = await findDatabaseUrl(config);
  const { makePool } = await import('../../core/database.ts');
  const pool = await makePool({
    databaseUrl,
    applicationName: 'svc-cli',
    maxConnections: 1,
    onError: () => {}, // the command's own query reports it
  });
  try {
    return await work(pool);
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    throw new Failure(describeDatabaseError(error, databaseUrl), { cause: error });
  } finally {
    await pool.end();
  }
}

async function findDatabaseUrl(config: Config): Promise<string> {
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  const file = join(config.dataDir, 'database-url');
  const text = await readFile(file, 'utf8').catch(() => '');
  if (text.trim() !== '') return text.trim();
  throw new Failure(
    `no database: DATABASE_URL is not set and ${file} is not there (is \`npm start\` running?)`,
  );
}
