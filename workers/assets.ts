/**
 * The files of a run: what it made is put before the request is settled, and shown from then on; what the caller sent is read, and
 * goes when the request has ended. A run that ends without settling leaves its files to housekeeping.
 */
import type { Readable } from 'node:stream';
import type { AssetDraft, AssetFile, AssetFiles } from '../core/assets/files.ts';
import { type AssetName, assetKey } from '../core/assets/keys.ts';
import type { Pool } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import { findInputIds } from './data/assets.ts';
import type { Run } from './run.ts';

/** A file that the ingress put before it submitted the request, or another that it names: as it rides in the job. */
export type InputFile = Omit<AssetName, 'kind'> & Partial<Pick<AssetName, 'kind'>>;

export interface RunAssets {
  /** All or none, stopped with the run. The answer goes into the outcome's `assets`; partial pictures only into events. */
  put(run: Run, drafts: readonly AssetDraft[]): Promise<readonly AssetFile[]>;
  /** Its bytes as they are read; stopped with the run. */
  openInput(run: Run, input: InputFile): Promise<Readable>;
  /** Of a request that has ended. Never throws: what cannot be deleted now is housekeeping's. */
  discardInputs(requestId: string): Promise<void>;
}

export function makeRunAssets(options: { files: AssetFiles; pool: Pool; logger: Logger }): RunAssets {
  const { files, pool, logger } = options;
  return {
    put: (run, drafts) =>
      files.put({ accountId: run.payload.accountId, requestId: run.id }, drafts, run.signal),
    openInput: (run, input) =>
      files.store.open(assetKey({ kind: 'input', ...input }), { signal: run.signal }),
    async discardInputs(requestId) {
      try {
        await files.discard(await findInputIds(pool, requestId));
      } catch (error) {
        logger.warn({ err: error, requestId }, 'inputs were left to housekeeping');
      }
    },
  };
}
