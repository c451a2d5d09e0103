/** The service under test, as deployed: release, then one ingress and one worker process on PostgreSQL and Redis. */

import { readFileSync } from 'node:fs';
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
/** As in the Procfile, for the command line too. */
const COMPILE_CACHE = 'node_modules/.cache/compile';
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
    this.#worker = this.#startAsDeployed('worker', 'worker', env);
    this.#ingress = this.#startAsDeployed('ingress', 'web', env);
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

  #startAsDeployed(name: string, processType: string, env: NodeJS.ProcessEnv): BenchProcess {
    const deployed = readProcfile(processType);
    return startProcess({
      name,
      command: process.execPath,
      args: deployed.args,
      directory: this.#directory,
      cwd: ROOT_DIRECTORY,
      env: { ...this.environment, ...deployed.env, ...env },
    });
  }
}

/** What a process type of the Procfile gives node: its variables and arguments. */
function readProcfile(processType: string): { env: Record<string, string>; args: string[] } {
  const text = readFileSync(join(ROOT_DIRECTORY, 'Procfile'), 'utf8');
  const [, variables = '', args] = new RegExp(`^${processType}: (.*?)\\bnode (.*)$`, 'm').exec(text) ?? [];
  if (args === undefined) throw new Error(`the Procfile does not run ${processType} by node`);
  const env = Object.fromEntries(
    variables
      .trim()
      .split(/ +/)
      .map((variable) => variable.split('=', 2) as [string, string]),
  );
  return { env, args: args.split(/ +/) };
}
