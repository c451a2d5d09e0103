/**
 * Files with their rows: the row is begun, then the file is put, so that nothing in the store is without an owner, whenever a
 * process dies. Making them visible is another's: `app.settle_requests` for results, `app.store_assets` for what has no request.
 */
import type { Readable } from 'node:stream';
import { v7 } from 'uuid';
import type { Pool } from '../database.ts';
import type { Logger } from '../logger.ts';
import { type AssetKind, type AssetName, assetKey } from './keys.ts';
import { destroySource, watchSource } from './measure.ts';
import { abandonAssets, beginAssets, purgeAssets } from './rows.ts';
import type { AssetStore } from './store.ts';

export interface AssetDraft {
  readonly kind: AssetKind;
  /** Among those of its kind in the request, from 0. */
  readonly position: number;
  readonly contentType: string;
  readonly body: Buffer | Readable;
  readonly maxBytes: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface AssetOwner {
  readonly accountId: string;
  /** Null: of no request (a character's). */
  readonly requestId: string | null;
}

/** A file that was put, not yet shown to anybody: what `app.asset_file` takes. */
export interface AssetFile extends AssetName {
  readonly position: number;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  /** Days until it expires, from when it is stored; null: kept until it is deleted. */
  readonly retentionDays: number | null;
}

export interface AssetFiles {
  readonly store: AssetStore;
  /** All of them or none: when one fails or the signal aborts, the others are taken back. Answers in their order. */
  put(owner: AssetOwner, drafts: readonly AssetDraft[], signal?: AbortSignal): Promise<readonly AssetFile[]>;
  /** Takes back what is not stored; what cannot be deleted now is left to housekeeping. Never throws. */
  discard(ids: readonly string[]): Promise<void>;
}

/** Files of one request that are put at once. */
const MAX_AT_ONCE = 4;

export function makeAssetFiles(options: {
  pool: Pool;
  store: AssetStore;
  retentionDays: number;
  logger: Logger;
}): AssetFiles {
  const { pool, store, logger } = options;

  async function discard(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    try {
      const abandoned = await abandonAssets(pool, ids);
      await store.delete(abandoned.map(assetKey));
      await purgeAssets(
        pool,
        abandoned.map(({ id }) => id),
      );
    } catch (error) {
      logger.warn({ err: error, count: ids.length }, 'files were left to housekeeping');
    }
  }

  return {
    store,
    async put(owner, drafts, signal) {
      for (const { body } of drafts) watchSource(body);
      const named = drafts.map((draft) => ({ ...draft, id: v7() }));
      try {
        signal?.throwIfAborted();
        await beginAssets(
          pool,
          named.map(({ id, kind, position, contentType, details }) => ({
            id,
            kind,
            position,
            contentType,
            details,
            ...owner,
          })),
        );
        return await putAll(store, named, options.retentionDays, signal);
      } catch (error) {
        for (const { body } of drafts) destroySource(body);
        await discard(named.map(({ id }) => id));
        throw error;
      }
    },
    discard,
  };
}

type NamedDraft = AssetDraft & { readonly id: string };

/** A few at a time; when one fails the others are stopped, and waited for. */
async function putAll(
  store: AssetStore,
  drafts: readonly NamedDraft[],
  retentionDays: number,
  signal: AbortSignal | undefined,
): Promise<AssetFile[]> {
  const failed = new AbortController();
  const either = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal]);
  const files: AssetFile[] = new Array(drafts.length);
  const left = drafts.entries();
  const work = async (): Promise<void> => {
    // the workers share the iterator
    for (const [index, { id, kind, position, contentType, body, maxBytes, details }] of left) {
      const put = await store.put(assetKey({ id, kind, contentType }), body, {
        contentType,
        maxBytes,
        signal: either,
      });
      const isKept = kind === 'character';
      files[index] = {
        id,
        kind,
        position,
        contentType,
        details,
        ...put,
        retentionDays: isKept ? null : retentionDays,
      };
    }
  };
  const workers = Array.from({ length: Math.min(MAX_AT_ONCE, drafts.length) }, () =>
    work().catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  await Promise.allSettled(workers);
  signal?.throwIfAborted();
  failed.signal.throwIfAborted(); // with what the first to fail failed with
  return files;
}

/** The shape of app.asset_file. */
export function assetFileToJson(file: AssetFile): Record<string, unknown> {
  return {
    id: file.id,
    bytes: file.bytes,
    sha256: file.sha256,
    details: file.details,
    retention_days: file.retentionDays,
  };
}
