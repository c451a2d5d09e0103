/**
 * A thread for work on bytes that strangers sent: one task at a time, within a time and a heap, and ended with whatever it is at
 * when it takes more. It goes when nobody asks for a while. It has no environment, and its words are not log lines.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Mutex } from 'async-mutex';

export interface Thread<Task, Answer> {
  /** Rejects when the thread fails, or takes too long: it is started anew for the next task. */
  ask(task: Task): Promise<Answer>;
  close(): Promise<void>;
}

export interface ThreadLimits {
  readonly timeoutMs: number;
  readonly maxHeapMb: number;
}

/** A thread holds some 30 MB. */
const IDLE_MS = 60_000;

/** `file`: a module that answers each message of its `parentPort` with one. */
export function makeThread<Task, Answer>(file: URL, limits: ThreadLimits): Thread<Task, Answer> {
  const turns = new Mutex();
  let thread: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;

  async function end(): Promise<void> {
    clearTimeout(idle);
    const ending = thread;
    thread = undefined;
    await ending?.terminate();
  }

  async function answer(task: Task): Promise<Answer> {
    clearTimeout(idle);
    thread ??= start(file, limits.maxHeapMb);
    const asked = thread;
    try {
      asked.ref();
      const message = once(asked, 'message', { signal: AbortSignal.timeout(limits.timeoutMs) });
      asked.postMessage(task);
      const [value] = (await message) as [Answer];
      asked.unref();
      idle = setTimeout(() => void end(), IDLE_MS).unref();
      return value;
    } catch (error) {
      await end();
      throw error;
    }
  }

  return { ask: (task) => turns.runExclusive(() => answer(task)), close: end };
}

function start(file: URL, maxHeapMb: number): Worker {
  const thread = new Worker(file, {
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb, maxYoungGenerationSizeMb: 16 },
    env: {},
    stdout: true,
    stderr: true,
  });
  thread.stdout.resume();
  thread.stderr.resume();
  thread.on('error', () => {}); // told to whoever waits for its answer
  return thread;
}
