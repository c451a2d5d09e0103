/** The service's own command line, called as an operator would: `node bin/svc.ts … --json`. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cleanEnvironment } from './processes.ts';
import { EDIT_SIZE, IMAGE_MODELS, IMAGE_SIDE, LARGE_SIZE, MODELS } from './wire.ts';

const COMMAND_TIMEOUT_MS = 120_000;
const PARALLEL_COMMANDS = 3;
/** Enough for any run: a request costs a few AP. */
const GRANT_AP = 1_000_000_000;
const RATE_PER_MINUTE = 100_000_000;

export const ROOT_DIRECTORY = join(import.meta.dirname, '..');

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a module of the project to its end. */
export function runModule(
  modulePath: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = {
      cwd: ROOT_DIRECTORY,
      env: { ...cleanEnvironment(), ...env },
      timeout: COMMAND_TIMEOUT_MS,
    };
    const child = execFile(process.execPath, [modulePath, ...args], options, (_error, stdout, stderr) => {
      resolve({ exitCode: child.exitCode ?? 1, stdout, stderr });
    });
  });
}

/** Runs `svc ARGS --json` and reads the object it prints; throws with its output when it fails. */
async function svc<T>(args: readonly string[], env: NodeJS.ProcessEnv): Promise<T> {
  const { exitCode, stdout, stderr } = await runModule('bin/svc.ts', [...args, '--json'], env);
  if (exitCode !== 0) throw new Error(`svc ${args.join(' ')} failed (exit ${exitCode}):\n${stdout}${stderr}`);
  return JSON.parse(stdout) as T;
}

/** Creates a funded account with a key that no rate limit will stop, and returns the key's secret. */
export async function createFundedKey(name: string, env: NodeJS.ProcessEnv): Promise<string> {
  const { account_id } = await svc<{ account_id: string }>(
    ['account', 'create', '--name', name, '--card'],
    env,
  );
  const grant = [
    'grant',
    '--account',
    account_id,
    '--ap',
    String(GRANT_AP),
    '--kind',
    'purchase',
    '--reason',
    'bench',
  ];
  await svc(grant, env);
  const issue = ['key', 'issue', '--account', account_id, '--rate-per-minute', String(RATE_PER_MINUTE)];
  const { secret } = await svc<{ secret: string }>(issue, env);
  return secret;
}

/** Creates `count` funded keys, a few commands at a time: each is a process start. */
export async function createFundedKeys(count: number, env: NodeJS.ProcessEnv): Promise<string[]> {
  const keys = new Array<string>(count);
  let next = 0;
  async function work(): Promise<void> {
    for (let index = next++; index < count; index = next++)
      keys[index] = await createFundedKey(`bench ${index}`, env);
  }
  await Promise.all(Array.from({ length: PARALLEL_COMMANDS }, work));
  return keys;
}

/** Imports a catalogue whose models are the mock's, routed to it. */
export async function importMockCatalogue(
  mockBaseUrl: string,
  directory: string,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const models = Object.values(MODELS).map(
    (id) => `  - {id: ${id}, type: chat, max_tokens: 4096, context_tokens: 128000,
     routes: [{provider: mock, upstream_model: ${id}}], pricing: {ap_in_per_1k: 25, ap_out_per_1k: 100}}`,
  );
  const prices = [`${IMAGE_SIDE}x${IMAGE_SIDE}`, EDIT_SIZE, LARGE_SIZE].map(
    (size) => `{size: ${size}, quality: low, ap: 10}`,
  );
  const imageModels = Object.values(IMAGE_MODELS).map(
    (id) => `  - {id: ${id}, type: image, routes: [{provider: mock, upstream_model: ${id}}],
     pricing: [${prices.join(', ')}]}`,
  );
  const catalogue = `providers:
  - {name: mock, kind: openai, base_url: "${mockBaseUrl}", credential_env: BENCH_KEY}
models:
${[...models, ...imageModels].join('\n')}
`;
  const file = join(directory, 'catalogue.yaml');
  await writeFile(file, catalogue);
  await svc(['catalog', 'import', file], env);
}

export interface LedgerCheck {
  readonly accounts: number;
  readonly entries: number;
  readonly open_holds: number;
  readonly stale_holds: number;
  readonly drift_ap: number;
  readonly problems: readonly unknown[];
}

/** The books' own check; a failing check is an answer too (exit 1), so only unreadable output throws. */
export async function checkLedger(env: NodeJS.ProcessEnv): Promise<LedgerCheck> {
  const { exitCode, stdout, stderr } = await runModule('bin/svc.ts', ['ledger', 'check', '--json'], env);
  try {
    return JSON.parse(stdout) as LedgerCheck;
  } catch (error) {
    throw new Error(`svc ledger check gave no JSON (exit ${exitCode}):\n${stdout}${stderr}`, {
      cause: error,
    });
  }
}
