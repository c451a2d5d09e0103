/** Whether the asset store can be written to: looked at when somebody asks, and not again for a few seconds. */
import type { AssetStore } from '../core/assets/store.ts';
import type { Logger } from '../core/logger.ts';

const KNOWN_FOR_MS = 5000;
/** A store that takes longer is as good as down. */
const PATIENCE_MS = 2000;

/** Those who ask while it is being looked at share the answer. */
export function makeStorageHealth(store: Pick<AssetStore, 'check'>, logger: Logger): () => Promise<boolean> {
  let known: { readonly at: number; readonly isUp: Promise<boolean> } | undefined;

  async function look(): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS);
    });
    try {
      await Promise.race([store.check(), tooLong]);
      return true;
    } catch (error) {
      logger.warn({ err: error }, 'the asset store cannot be written to');
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  return () => {
    if (known === undefined || Date.now() - known.at > KNOWN_FOR_MS) known = { at: Date.now(), isUp: look() };
    return known.isUp;
  };
}
