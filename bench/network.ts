/** Free loopback ports and waiting for a server to answer. */
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BenchProcess, isRunning, logTail } from './processes.ts';

const POLL_INTERVAL_MS = 10;

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** Resolves with the milliseconds until `url` answers 200; rejects when `owner` exits or the time is up. */
export async function waitForStatus(url: string, timeoutMs: number, owner: BenchProcess): Promise<number> {
  const startedAt = performance.now();
  let last = 'no answer';
  while (performance.now() - startedAt < timeoutMs) {
    if (!isRunning(owner)) throw new Error(`${owner.name} stopped while starting:\n${logTail(owner)}`);
    try {
      const response = await fetch(url, { headers: { connection: 'close' } });
      last = `${response.status} ${await response.text()}`;
      if (response.status === 200) return performance.now() - startedAt;
    } catch {
      last = 'connection refused';
    }
    await sleep(POLL_INTERVAL_MS);
  }
  throw new Error(
    `${owner.name}: ${url} did not answer 200 in ${timeoutMs} ms (last: ${last})\n${logTail(owner)}`,
  );
}
