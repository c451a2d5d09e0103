/** The thread in which manifests that strangers sent are parsed. Started and ended by `inspector.ts`. */
import { parentPort } from 'node:worker_threads';
import { checkManifest } from './check-manifest.ts';
import type { Inspection } from './inspection.ts';
import type { ManifestPlace } from './picture-parts.ts';

export interface InspectionTask {
  readonly bytes: Uint8Array;
  readonly place: ManifestPlace;
  readonly ownCertificate: Uint8Array | undefined;
  readonly inspection: Inspection;
}

parentPort?.on('message', async ({ bytes, place, ownCertificate, inspection }: InspectionTask) => {
  await checkManifest(bytes, place, ownCertificate, inspection);
  parentPort?.postMessage(inspection);
});
