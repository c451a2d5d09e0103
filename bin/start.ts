/**
 * `npm start`: the whole service on this machine. PostgreSQL of our own unless DATABASE_URL is set, relay and limits in this
 * process unless REDIS_URL is set, the sandbox catalogue unless CATALOG_FILE is set; migrations, ingress and worker here, the
 * operators' GraphQL beside it; and at last the addresses, a key, and a curl line that works.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { loadAdminSettings } from '../admin-graphql/settings.ts';
import { makeAssetStore } from '../core/assets/make-store.ts';
import { importCatalogue } from '../core/catalogue-file/index.ts';
import { type Config, loadConfig } from '../core/config.ts';
import { makePool, type Pool, withTransaction } from '../core/database.ts';
import { type Logger, makeLogger } from '../core/logger.ts';
import { makeLocalBus, makeRedisBus } from '../core/relay/bus.ts';
import { runProcess, type ShutdownStep } from '../core/shutdown.ts';
import { type Demo, prepareDemo, readDemo } from './demo.ts';
import { startEmbeddedPostgres } from './embedded-postgres.ts';
import { migrate } from './migrate.ts';

const SANDBOX_CATALOGUE = join(import.meta.dirname, '..', 'catalogue', 'sandbox.yaml');
const ADMIN_STOP_MS = 10_000;

/** Ingress and worker stop one after the other here, and no platform waits. */
const STOP_MS = 60_000;

const start = async (): Promise<{ logger: Logger; steps: readonly ShutdownStep[] }> => {
  const config = loadConfig();
  loadAdminSettings(); // read by the child, which is started last
  const logger = makeLogger('svc', process.env.LOG_LEVEL || 'warn');
  const demo = await readDemo(config, process.env);
  await requireFreePort('PORT', config.port, config.host);
  await requireFreePort('ADMIN_PORT', config.adminPort, config.host);
  const steps: ShutdownStep[] = [];
  let isStopping = false;
  // half a second of loading, while PostgreSQL starts
  const loading = Promise.all([import('../ingress/server.ts'), import('../workers/worker.ts')]);
  loading.catch(() => {}); // awaited below, unless PostgreSQL does not start
  try {
    const databaseUrl = config.databaseUrl ?? (await startDatabase(config, steps));
    const { warnings } = await migrate(databaseUrl);
    for (const warning of warnings) logger.warn(warning);
    await seed(databaseUrl, config, demo, logger);

    const bus =
      config.redisUrl === undefined
        ? makeLocalBus()
        : await makeRedisBus(config.redisUrl, (error) => logger.warn({ err: error }, 'Redis'));
    steps.unshift({ name: 'relay', run: () => bus.close() });
    const store = await makeAssetStore(config);
    steps.unshift({ name: 'assets', run: () => store.close() });
    const [{ startIngress }, { startWorker }] = await loading;
    const worker = await startWorker({ config, databaseUrl, bus, store, logger, env: process.env });
    steps.unshift(...worker.shutdown);
    const ingress = await startIngress({
      config: { ...config, userTokenSecret: config.userTokenSecret ?? demo.userTokenSecret },
      databaseUrl,
      bus,
      store,
      logger,
    });
    steps.unshift(...ingress.shutdown);
    // last: loading it takes as long as everything before, and requests need not wait for it
    const admin = startAdmin(databaseUrl, config, demo);
    admin.on('exit', (code) => {
      if (!isStopping) logger.error({ code }, 'the admin GraphQL stopped');
    });
    steps.unshift({
      name: 'admin',
      run: () => {
        isStopping = true;
        return stopAdmin(admin);
      },
    });
    process.stdout.write(welcome(ingress.port, config, demo));
    return { logger, steps };
  } catch (error) {
    for (const step of steps) await step.run();
    throw error;
  }
};

/** Better said now than after everything else has started. */
async function requireFreePort(name: string, port: number, host: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(`port ${port} cannot be used (${error.code}): set ${name} to another`));
    });
    server.listen(port, host, () => server.close(() => resolve()));
  });
}

async function startDatabase(config: Config, steps: ShutdownStep[]): Promise<string> {
  const postgres = await startEmbeddedPostgres({ dataDir: config.dataDir });
  // a server found running may be one that a killed `npm start` left, or another's that is alive: then it is not ours to use
  const lock = new pg.Client({ connectionString: postgres.url, application_name: 'svc-start-lock' });
  lock.on('error', () => {}); // the database went away: everything else says so
  await lock.connect();
  const { rows } = await lock.query<{ mine: boolean }>(
    "select pg_try_advisory_lock(hashtext('svc.start')) as mine",
  );
  if (rows[0]?.mine !== true) {
    await lock.end();
    throw new Error(
      `another npm start is running with DATA_DIR ${config.dataDir}: stop it, or set another DATA_DIR`,
    );
  }
  steps.unshift({
    name: 'PostgreSQL',
    run: async () => {
      await lock.end();
      await postgres.stop();
    },
  });
  return postgres.url;
}

async function seed(databaseUrl: string, config: Config, demo: Demo, logger: Logger): Promise<void> {
  const file = config.catalogFile ?? SANDBOX_CATALOGUE;
  const text = await readFile(file, 'utf8');
  const pool: Pool = await makePool({
    databaseUrl,
    applicationName: 'svc-start',
    maxConnections: 1,
    onError: (error) => logger.warn({ err: error }, 'an idle database connection broke'),
  });
  try {
    await withTransaction(pool, async (client) => {
      await importCatalogue(client, text, file, 'start');
      await prepareDemo(client, demo);
    });
  } finally {
    await pool.end();
  }
}

/** The operators' GraphQL is a process of its own: a fault there cannot reach the public one. */
function startAdmin(databaseUrl: string, config: Config, demo: Demo): ChildProcess {
  return spawn(process.execPath, [join(import.meta.dirname, '..', 'admin-graphql', 'index.ts')], {
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      ADMIN_PORT: String(config.adminPort),
      USER_TOKEN_SECRET: config.userTokenSecret ?? demo.userTokenSecret,
      LOG_LEVEL: process.env.LOG_LEVEL || 'warn',
    },
    // the channel tells the child when this process is gone
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true, // Ctrl-C reaches us alone, and we stop it in order
  });
}

function stopAdmin(admin: ChildProcess): Promise<void> {
  if (admin.exitCode !== null || admin.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const kill = setTimeout(() => admin.kill('SIGKILL'), ADMIN_STOP_MS);
    admin.once('exit', () => {
      clearTimeout(kill);
      resolve();
    });
    admin.kill('SIGTERM');
  });
}

function welcome(port: number, config: Config, demo: Demo): string {
  const base = `http://127.0.0.1:${port}`;
  const body = '{"model":"sandbox-chat","messages":[{"role":"user","content":"Hello!"}]}';
  return `
  svc is running.

    API              ${base}
    Operators        http://127.0.0.1:${config.adminPort}  (GraphiQL; token below)
    Demo key         ${demo.apiKey}
    Operator token   ${demo.adminToken}
    Data             ${config.databaseUrl === undefined ? config.dataDir : 'DATABASE_URL'}

  Try it:

    curl ${base}/v1/chat/completions -H 'Authorization: Bearer ${demo.apiKey}' -H 'Content-Type: application/json' -d '${body}'

  Ctrl-C stops everything.

`;
}

await runProcess('start', start, STOP_MS);
