/** Fifty edits at once against fresh processes of the service, and what they did to those and to everybody else's requests. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchContext } from './context.ts';
import { editBody, send } from './image-client.ts';
import type { LoadResult } from './load/job.ts';
import { cpuMs, peakMegabytes } from './proc-stat.ts';
import type { Service } from './service.ts';
import { IMAGE_MODELS, IMAGE_SIDE, MODELS } from './wire.ts';

export const EDITS = 50;
/** Chat beside the edits, to see what they do to everybody else. */
export const CHATS_PER_SECOND = 50;
const CHAT_SECONDS = 6;
const WARM_UP_CHATS = 2000;

export interface LoopDelay {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** What bench/loop-delay.ts saw in a process since it was last asked. */
async function takeLoopDelay(directory: string, pid: number): Promise<LoopDelay> {
  const file = join(directory, `${pid}.json`);
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  for (;;) {
    try {
      return JSON.parse(readFileSync(file, 'utf8')) as LoopDelay;
    } catch {
      await sleep(10);
    }
  }
}

export interface EditRun {
  readonly label: string;
  readonly seconds: number;
  readonly peaks: ReadonlyMap<string, number>;
  readonly delays: ReadonlyMap<string, LoopDelay>;
  readonly chat: LoadResult;
  /** Of ingress and worker, chat included. */
  readonly cpuMs: ReadonlyMap<string, number>;
}

/** Fresh processes, chat at a steady pace, and (but for the first run, to compare with) all edits at once. */
export async function runEdits(
  context: BenchContext,
  service: Service,
  kind: 'none' | 'multipart' | 'JSON',
  picture: Buffer,
): Promise<EditRun> {
  context.say(kind === 'none' ? 'chat alone' : `${EDITS} edits at once, ${kind}`);
  const { directory } = context;
  await service.stopProcesses();
  await service.startProcesses({
    NODE_OPTIONS: `--import=${new URL('./loop-delay.ts', import.meta.url).href}`,
    LOOP_DELAY_DIRECTORY: directory,
  });
  const target = service.target();
  const until = { requests: WARM_UP_CHATS };
  await context.load.run({ kind: 'closed', target, model: MODELS.instant, connections: 20, until });
  for (const pid of service.pids.values()) await takeLoopDelay(directory, pid);

  const pids = [...service.pids];
  const cpuOf = () => new Map(pids.map(([name, pid]) => [name, cpuMs(pid)]));
  const before = cpuOf();
  const chatting = context.load.run({
    kind: 'open',
    target,
    model: MODELS.instant,
    requestsPerSecond: CHATS_PER_SECOND,
    seconds: CHAT_SECONDS,
  });
  const startedAt = performance.now();
  const base64 = Buffer.from(picture.toString('base64'));
  const edits = Array.from({ length: kind === 'none' ? 0 : EDITS }, (_, index) => {
    const fields = {
      model: IMAGE_MODELS.slow,
      prompt: `At night, number ${index}, ${kind}`,
      size: `${IMAGE_SIDE}x${IMAGE_SIDE}`,
      quality: 'low',
      response_format: 'b64_json',
    };
    const body = editBody(kind === 'JSON' ? 'JSON' : 'multipart', fields, picture, base64);
    const key = service.apiKeys[index % service.apiKeys.length] ?? service.hotKey;
    return send(service, { path: '/v1/images/edits', key, ...body });
  });
  await Promise.all(edits);
  const seconds = (performance.now() - startedAt) / 1000;
  const chat = await chatting;
  const used = new Map([...cpuOf()].map(([name, ms]) => [name, ms - (before.get(name) ?? 0)]));
  const delays = new Map<string, LoopDelay>();
  for (const [name, pid] of pids) delays.set(name, await takeLoopDelay(directory, pid));
  const peaks = new Map(pids.map(([name, pid]) => [name, peakMegabytes(pid)]));
  return {
    label: kind === 'none' ? 'no edits' : `${EDITS} edits, ${kind}`,
    seconds,
    peaks,
    delays,
    chat,
    cpuMs: used,
  };
}
