/** The service under test, as deployed: release, then one ingress and one worker process on PostgreSQL and Redis. */

import { join } from 'node:path';
import type { LoadTarget } from './load/job.ts';
import { freePort, waitForStatus } from './network.ts';
import { type BenchProcess, startProcess, stopProcess } from './processes.ts';
import {
  createFundedKey,
  createFundedKeys,
  importMockCatalogue,
  ROOT_DIRECTORY,
  runModule,
} from './service-commands.ts';
import { createDatabase, type Database, type Redis } from './stores.ts';

const DATABASE_NAME = 'svc';
/** As in the Procfile. */
const COMPILE_CACHE = 'node_modules/.cache/compile';
const NODE_FLAGS = [
  '--max-old-space-size=512',
  '--max-semi-space-size=32',
  '--no-minor-gc-task',
  '--v8-pool-size=2',
];
const HEALTHY_TIMEOUT_MS = 60_000;

export interface ServiceOptions {
  readonly database: Database;
  readonly redis: Redis;
  readonly mockBaseUrl: string;
  readonly directory: string;
  readonly accountCount: number;
}

export class Service {
  readonly environment: NodeJS.ProcessEnv;
  readonly #directory: string;
  readonly #port: number;
  #ingress: BenchProcess | undefined;
  #worker: BenchProcess | undefined;
  apiKeys: readonly string[] = [];
  hotKey = '';

  private constructor(options: ServiceOptions, port: number) {
    this.#directory = options.directory;
    this.#port = port;
    this.environment = {
      NODE_ENV: 'production',
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      DATABASE_URL: `${options.database.baseUrl}/${DATABASE_NAME}`,
      REDIS_URL: options.redis.url,
      HOST: '127.0.0.1',
      PORT: String(port),
      DATA_DIR: join(options.directory, 'data'),
      BENCH_KEY: 'sk-bench',
      MALLOC_ARENA_MAX: '2',
    };
  }

  /** Releases the schema, fills the catalogue and the accounts, and waits until `/health` says a paid request would succeed. */
  static async start(options: ServiceOptions): Promise<Service> {
    const service = new Service(options, await freePort());
    await createDatabase(options.database, DATABASE_NAME);
    const release = await runModule('bin/release.ts', [], service.environment);
    if (release.exitCode !== 0)
      throw new Error(`node bin/release.ts failed:\n${release.stdout}${release.stderr}`);
    await importMockCatalogue(options.mockBaseUrl, options.directory, service.environment);
    service.apiKeys = await createFundedKeys(options.accountCount, service.environment);
    service.hotKey = await createFundedKey('bench hot', service.environment);
    await service.startProcesses();
    return service;
  }

  /** `env`: besides the environment of all. */
  async startProcesses(env: NodeJS.ProcessEnv = {}): Promise<void> {
    this.#worker = this.#startModule('worker', 'workers/index.ts', env);
    this.#ingress = this.#startModule('ingress', 'ingress/index.ts', env);
    await waitForStatus(`http://127.0.0.1:${this.#port}/health`, HEALTHY_TIMEOUT_MS, this.#ingress);
  }

  /** Ingress first, so that nothing is accepted that no worker would finish. */
  async stopProcesses(): Promise<void> {
    if (this.#ingress !== undefined) await stopProcess(this.#ingress);
    if (this.#worker !== undefined) await stopProcess(this.#worker);
  }

  get pids(): ReadonlyMap<string, number> {
    const processes = [this.#ingress, this.#worker].filter((each) => each !== undefined);
    return new Map(processes.map(({ name, pid }) => [name, pid]));
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  target(apiKeys: readonly string[] = this.apiKeys): LoadTarget {
    return { url: `${this.origin}/v1/chat/completions`, headers: {}, apiKeys };
  }

  #startModule(name: string, modulePath: string, env: NodeJS.ProcessEnv): BenchProcess {
    return startProcess({
      name,
      command: process.execPath,
      args: [...NODE_FLAGS, modulePath],
      directory: this.#directory,
      cwd: ROOT_DIRECTORY,
      env: { ...this.environment, ...env },
    });
  }
}
