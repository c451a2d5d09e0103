/**
 * The database of the command line: DATABASE_URL, else the embedded database that `npm start` keeps in DATA_DIR. Turns what
 * can go wrong on the way into one line.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../core/config.ts';
import type { Pool } from '../../core/database.ts';
import { Failure } from './failure.ts';

/** 'no such schema', 'no such table', 'no such function': `release` has not run. */
const NOT_SET_UP = ['3F000', '42P01', '42883'];

const UNREACHABLE = /^(?:ECONN|EHOST|ENET|ETIMEDOUT|ENOTFOUND|EAI_|EPIPE)/;

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

/** One line for an error of the database or of the way to it; never with the password that the address holds. */
export function describeDatabaseError(error: unknown, databaseUrl: string | undefined): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string') return firstLine(error.message);
  if (NOT_SET_UP.includes(code)) {
    return `the database is not set up for this version: run \`npm run release\` (${firstLine(error.message)})`;
  }
  if (/^[0-9A-Z]{5}$/.test(code)) return firstLine(error.message);
  if (!UNREACHABLE.test(code)) return firstLine(error.message);
  return `the database at ${hostOf(databaseUrl)} cannot be reached: ${firstLine(error.message) || code}`;
}

function hostOf(databaseUrl: string | undefined): string {
  return (databaseUrl !== undefined && URL.parse(databaseUrl)?.host) || 'DATABASE_URL';
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
