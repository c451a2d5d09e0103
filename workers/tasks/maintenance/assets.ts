/**
 * Sweeps the asset store: files that are expired, deleted, or were never stored by a request that has ended. Rows lead to files,
 * never the other way round: the store is not listed.
 */
import { type AssetName, assetKey } from '../../../core/assets/keys.ts';
import { purgeAssets } from '../../../core/assets/rows.ts';
import type { AssetStore } from '../../../core/assets/store.ts';
import type { Pool } from '../../../core/database.ts';
import type { Logger } from '../../../core/logger.ts';
import { findDueAssets } from '../../data/assets.ts';

const BATCH = 500;
/** In one sweep; what is left waits for the next. */
const MAX_BATCHES = 100;

export interface SweepOptions {
  readonly pool: Pool;
  readonly store: AssetStore;
  readonly logger: Logger;
}

/** Returns how many files went. Throws when the store deletes nothing; what it was given is due again ten minutes later. */
export async function sweepAssets(options: SweepOptions): Promise<number> {
  const { pool, logger } = options;
  let count = 0;
  for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
    const looked = await findDueAssets(pool, BATCH);
    const over = looked.filter((asset) => asset.isOver);
    if (over.length > 0) {
      const deleted = await deleteFiles(options, over);
      await purgeAssets(
        pool,
        deleted.map(({ id }) => id),
      );
      count += deleted.length;
    }
    if (looked.length < BATCH) break;
  }
  if (count > 0) logger.info({ count }, 'files were swept');
  return count;
}

/** All at once; where that fails one by one, so that a file that cannot be deleted does not keep the others. */
async function deleteFiles(
  { store, logger }: SweepOptions,
  assets: readonly AssetName[],
): Promise<readonly AssetName[]> {
  try {
    await store.delete(assets.map(assetKey));
    return assets;
  } catch (cause) {
    const deleted: AssetName[] = [];
    let failures = 0;
    for (const asset of assets) {
      try {
        await store.delete([assetKey(asset)]);
        deleted.push(asset);
      } catch (error) {
        failures += 1;
        if (deleted.length === 0 && failures >= MAX_FAILURES) throw cause;
        logger.warn({ err: error, assetId: asset.id }, 'a file could not be deleted');
      }
    }
    return deleted;
  }
}

/** So many without one success: it is the store that fails, and not these files. */
const MAX_FAILURES = 10;
