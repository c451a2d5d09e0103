/**
 * The gateway compared with: @portkey-ai/gateway of bench/package.json, installed on demand under bench/ only.
 * As published it answers streams with 500 (cured by pinning @hono/node-server), listens on every interface (cured by
 * a preload), and sleeps 25 ms before a stream's first chunk (left as it is, and named beside its figures).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, waitForStatus } from '../network.ts';
import { type BenchProcess, startProcess } from '../processes.ts';

export const PORTKEY_VERSION = '1.15.2';
export const PORTKEY_FIRST_CHUNK_SLEEP_MS = 25;

const BENCH_DIRECTORY = join(import.meta.dirname, '..');
const PACKAGE_DIRECTORY = join(BENCH_DIRECTORY, 'node_modules/@portkey-ai/gateway');
const START_TIMEOUT_MS = 20_000;

function installedVersion(): string | undefined {
  const packageFile = join(PACKAGE_DIRECTORY, 'package.json');
  if (!existsSync(packageFile)) return undefined;
  return (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version;
}

/** Installs the gateway from bench/package-lock.json when it is missing. Its install scripts are not run. */
export function installPortkey(say: (line: string) => void): void {
  if (installedVersion() === PORTKEY_VERSION) return;
  say(`Installing @portkey-ai/gateway ${PORTKEY_VERSION} under bench/ (once, for the comparison) …`);
  const install = spawnSync(
    'npm',
    ['ci', '--prefix', BENCH_DIRECTORY, '--ignore-scripts', '--no-audit', '--no-fund'],
    {
      encoding: 'utf8',
    },
  );
  if (install.status !== 0) throw new Error(`npm ci --prefix bench failed:\n${install.stderr}`);
}

export interface Portkey {
  readonly process: BenchProcess;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Starts the gateway in front of the mock upstream. */
export async function startPortkey(mockBaseUrl: string, directory: string): Promise<Portkey> {
  const port = await freePort();
  const started = startProcess({
    name: 'portkey',
    command: process.execPath,
    args: [
      '--import',
      new URL('./portkey-loopback.ts', import.meta.url).pathname,
      join(PACKAGE_DIRECTORY, 'build/start-server.js'),
      `--port=${port}`,
      '--headless',
    ],
    directory,
    env: { NODE_ENV: 'production' },
  });
  await waitForStatus(`http://127.0.0.1:${port}/`, START_TIMEOUT_MS, started);
  return {
    process: started,
    url: `http://127.0.0.1:${port}/v1/chat/completions`,
    headers: { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': mockBaseUrl },
  };
}
