/**
 * Inspects pictures that anybody sends: whether they carry a C2PA manifest and what is wrong with it. Finding it is done here; what
 * is found is checked in a thread, one picture at a time, which is ended when one takes too long or too much. Never says "trusted".
 */
import { makeThread, type Thread } from '../thread.ts';
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

export function makeInspector(
  config: IdentityConfig,
  { timeoutMs = TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
): Inspector {
  const thread: Thread<InspectionTask, Inspection> = makeThread(
    new URL('./inspect-thread.ts', import.meta.url),
    { timeoutMs, maxHeapMb: MAX_HEAP_MB },
  );

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
      return thread.ask({ bytes, place, ownCertificate: own, inspection }).catch(() => giveUp(inspection));
    },
    close: () => thread.close(),
  };
}

function giveUp(inspection: Inspection): Inspection {
  inspection.problems.push({
    code: 'manifest.too_large',
    detail: 'checking it takes too long or too much memory',
  });
  return inspection;
}
