/** Starts the mock upstream, a process of its own (mock-upstream.ts). */
import { type BenchProcess, forkModule } from './processes.ts';

export async function startMock(directory: string): Promise<{ process: BenchProcess; baseUrl: string }> {
  const modulePath = new URL('./mock-upstream.ts', import.meta.url);
  const { process, firstMessage } = await forkModule({ name: 'mock', modulePath, args: [], directory });
  return { process, baseUrl: `http://127.0.0.1:${(firstMessage as { port: number }).port}/v1` };
}
