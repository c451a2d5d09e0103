/**
 * The files of a run: what it made is put before the request is settled, and shown from then on; what the caller sent is read, and
 * goes when the request has ended. A run that ends without settling leaves its files to housekeeping.
 */
import type { Readable } from 'node:stream';
import type { AssetDraft, AssetFile, AssetFiles, AssetOwner } from '../core/assets/files.ts';
import { type AssetName, assetKey } from '../core/assets/keys.ts';
import type { Pool } from '../core/database.ts';
import { ServiceError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { findInputIds } from './data/assets.ts';
import type { Run } from './run.ts';

/** A file that the ingress put before it submitted the request, or another that it names: as it rides in the job. */
export type InputFile = Omit<AssetName, 'kind'> & Partial<Pick<AssetName, 'kind'>>;

export interface RunAssets {
  /** All or none, stopped with the run. The answer goes into the outcome's `assets`; partial pictures only into events. */
  put(run: Run, drafts: readonly AssetDraft[]): Promise<readonly AssetFile[]>;
  /** The same of a run that was stopped: until `signal` says so. */
  keep(run: Run, drafts: readonly AssetDraft[], signal: AbortSignal): Promise<readonly AssetFile[]>;
  readInput(run: Run, input: InputFile, maxBytes: number): Promise<Buffer>;
  /** Its bytes as they are read; stopped with the run. */
  openInput(run: Run, input: InputFile): Promise<Readable>;
  /** Of a request that has ended. Never throws: what cannot be deleted now is housekeeping's. */
  discardInputs(requestId: string): Promise<void>;
}

export function makeRunAssets(options: { files: AssetFiles; pool: Pool; logger: Logger }): RunAssets {
  const { files, pool, logger } = options;
  return {
    put: (run, drafts) => files.put(ownerOf(run), drafts, run.signal),
    keep: (run, drafts, signal) => files.put(ownerOf(run), drafts, signal),
    readInput: (run, input, maxBytes) =>
      files.store.read(assetKey({ kind: 'input', ...input }), { maxBytes, signal: run.signal }),
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

function ownerOf({ payload, id }: Run): AssetOwner {
  return { accountId: payload.accountId, requestId: id };
}

/**
 * The same, for a run: a store that cannot be written to or read is no fault of the request, which may be made again. `failure`
 * tells it apart from those of providers, also where a provider, reading an input, meets it first.
 */
export function sayingWhatFailed(
  assets: RunAssets,
  run: Run,
  logger: Logger,
): { assets: RunAssets; failure: () => ServiceError | undefined } {
  let failure: ServiceError | undefined;
  const noteFailure = (error: unknown): void => {
    if (!run.signal.aborted) failure ??= storeFailure(error, run, logger);
  };
  const failed = (error: unknown): never => {
    noteFailure(error);
    throw failure ?? error;
  };
  return {
    failure: () => failure,
    assets: {
      ...assets,
      put: (one, drafts) => assets.put(one, drafts).catch(failed),
      readInput: (one, input, maxBytes) => assets.readInput(one, input, maxBytes).catch(failed),
      async openInput(one, input) {
        const file = await assets.openInput(one, input).catch(failed);
        return file.once('error', noteFailure);
      },
    },
  };
}

/** As the caller is told. */
export function storeFailure(error: unknown, { id }: Run, logger: Logger): ServiceError {
  logger.error({ err: error, requestId: id }, 'the asset store failed');
  return new ServiceError('generation_failed', {}, { cause: error });
}
