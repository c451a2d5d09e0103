/**
 * One embedded PostgreSQL for the whole run, migrated once into a template database that every test file clones
 * (test/helpers/database.ts). Mocha runs these fixtures once, in its main process and before it forks its workers, which
 * find the address in their environment.
 */
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../bin/embedded-postgres.ts';
import { migrate } from '../../bin/migrate.ts';
import { TEMPLATE_DATABASE } from './database.ts';

const FOLDER_PREFIX = 'svc-test-';

let postgres: EmbeddedPostgres | undefined;
let folder: string | undefined;

export async function mochaGlobalSetup(): Promise<void> {
  await removeLeftovers();
  folder = await mkdtemp(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`));
  await chmod(folder, 0o755); // PostgreSQL, which refuses to be root, must be able to enter
  process.once('exit', killNow);
  postgres = await startEmbeddedPostgres({
    dataDir: folder,
    database: TEMPLATE_DATABASE,
    settings: {
      // a test database need not survive a crash of the machine; one of the process it does survive
      fsync: 'off',
      full_page_writes: 'off',
      max_wal_size: '4GB',
    },
  });
  const report = await migrate(postgres.url);
  if (report.warnings.length > 0) throw new Error(`migrating warned: ${report.warnings.join('; ')}`);
  await protectTemplate(postgres.url);
  process.env.SVC_TEST_POSTGRES_URL = postgres.url;
}

export async function mochaGlobalTeardown(): Promise<void> {
  process.off('exit', killNow);
  await postgres?.stop();
  postgres = undefined;
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
}

/** A template cannot be cloned while somebody is connected to it: nobody may be. */
async function protectTemplate(templateUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: templateUrl.replace(/\/[^/]*$/, '/postgres') });
  await client.connect();
  try {
    await client.query(`alter database ${TEMPLATE_DATABASE} with is_template true allow_connections false`);
  } finally {
    await client.end();
  }
}

/** The run ends without its teardown (Ctrl-C): the database goes with it; its folder goes at the next run. */
function killNow(): void {
  if (postgres !== undefined) tryKill(postgres.pid, 'SIGQUIT');
}

/** What runs that were killed outright left behind: their folders, and their PostgreSQL where it still runs. */
async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const owner = new RegExp(`^${FOLDER_PREFIX}(\\d+)-`).exec(name)?.[1];
    if (owner === undefined || isAlive(Number(owner))) continue;
    const leftover = join(tmpdir(), name);
    const lock = await readFile(join(leftover, 'postgres', 'postmaster.pid'), 'utf8').catch(() => '');
    const [pid, cluster] = lock.split('\n');
    // a process id may have been given to somebody else since: only one that runs on this folder is ours
    if (pid && cluster === join(leftover, 'postgres') && (await commandLine(pid)).includes(cluster))
      tryKill(Number(pid), 'SIGQUIT');
    await rm(leftover, { recursive: true, force: true, maxRetries: 5 }).catch(() => {}); // another run removes it too
  }
}

async function commandLine(pid: string): Promise<string> {
  return await readFile(join('/proc', pid, 'cmdline'), 'utf8').catch(() => '');
}

function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // already gone
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
