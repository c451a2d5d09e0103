/**
 * Inspects pictures that anybody sends: whether they carry a C2PA manifest and what is wrong with it. Finding it is done here; what
 * is found is checked in a thread, one picture at a time, which is ended when one takes too long or too much. Never says "trusted".
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Mutex } from 'async-mutex';
import { type IdentityConfig, ownCertificate } from './identity.ts';
import type { InspectionTask } from './inspect-thread.ts';
import { type Inspection, newInspection } from './inspection.ts';
import { findManifests } from './picture-parts.ts';

export interface Inspector {
  /** Undefined: the bytes are no PNG, JPEG or WebP. */
  inspect(bytes: Uint8Array): Promise<Inspection | undefined>;
  close(): Promise<void>;
}

/** An honest picture of 25 MB takes a quarter of a second, and the thread as much to start. */
const TIMEOUT_MS = 5000;
const MAX_HEAP_MB = 128;
/** The thread holds some 45 MB: it goes when nobody asks. */
const IDLE_MS = 60_000;

export function makeInspector(
  config: IdentityConfig,
  { timeoutMs = TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
): Inspector {
  const turns = new Mutex();
  let thread: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;

  async function endThread(): Promise<void> {
    clearTimeout(idle);
    const ending = thread;
    thread = undefined;
    await ending?.terminate();
  }

  async function check(task: InspectionTask): Promise<Inspection> {
    clearTimeout(idle);
    thread ??= startThread();
    const asked = thread;
    try {
      asked.ref();
      const answer = once(asked, 'message', { signal: AbortSignal.timeout(timeoutMs) });
      asked.postMessage(task);
      const [inspection] = (await answer) as [Inspection];
      asked.unref();
      idle = setTimeout(() => void endThread(), IDLE_MS).unref();
      return inspection;
    } catch {
      await endThread();
      return giveUp(task.inspection);
    }
  }

  return {
    async inspect(bytes) {
      const parts = findManifests(bytes);
      if (parts === undefined) return undefined;
      const { format, manifests, fault } = parts;
      const inspection = newInspection(format, manifests.length > 0);
      if (fault !== undefined) inspection.problems.push({ code: 'file.malformed', detail: fault });
      const [place, ...others] = manifests;
      if (place === undefined) return inspection;
      if (format === 'webp') {
        inspection.problems.push({
          code: 'format.unsupported',
          detail: 'manifests in WebP are found, not checked',
        });
        return inspection;
      }
      if (others.length > 0) {
        inspection.problems.push({
          code: 'manifest.multiple',
          detail: 'the file has more than one manifest store',
        });
        inspection.valid = false;
        return inspection;
      }
      const own = (await ownCertificate(config))?.raw;
      return turns.runExclusive(() => check({ bytes, place, ownCertificate: own, inspection }));
    },
    close: endThread,
  };
}

function startThread(): Worker {
  const thread = new Worker(new URL('./inspect-thread.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB, maxYoungGenerationSizeMb: 16 },
    env: {}, // nothing in there needs a secret
    stdout: true, // a library's words are not log lines
    stderr: true,
  });
  thread.stdout.resume();
  thread.stderr.resume();
  thread.on('error', () => {}); // told to whoever waits for its answer
  return thread;
}

function giveUp(inspection: Inspection): Inspection {
  inspection.problems.push({
    code: 'manifest.too_large',
    detail: 'checking it takes too long or too much memory',
  });
  return inspection;
}
