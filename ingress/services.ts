/**
 * What the routes of one ingress process share: made once at start, handed to every route builder.
 */
import type { AssetFiles } from '../core/assets/files.ts';
import type { AudioMeter } from '../core/audio/measure.ts';
import type { CatalogueCache } from '../core/catalogue.ts';
import type { Config } from '../core/config.ts';
import type { Pool } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import type { Inspector } from '../core/provenance/inspector.ts';
import type { BodyBudget } from './body-budget.ts';
import type { KeyCache } from './key-cache.ts';
import type { Load } from './load.ts';
import type { AddressCap } from './middleware/ip-daily-cap.ts';
import type { RateLimiter } from './middleware/rate-limit.ts';
import type { PageViewCounter } from './page-views.ts';
import type { Relay } from './relay.ts';
import type { Submit } from './submit.ts';

export interface Services {
  readonly config: Config;
  readonly logger: Logger;
  readonly pool: Pool;
  /** For what locks balances, with a lock timeout: who waits for one of them keeps nobody from reading. */
  readonly balancesPool: Pool;
  readonly catalogue: CatalogueCache;
  readonly keys: KeyCache;
  readonly rateLimiter: RateLimiter;
  readonly addressCap: AddressCap;
  readonly submit: Submit;
  readonly relay: Relay;
  readonly load: Load;
  readonly inspector: Inspector;
  readonly audioMeter: AudioMeter;
  /** The asset store, and files with their rows. */
  readonly files: AssetFiles;
  readonly bodyBudget: BodyBudget;
  /** Whether the asset store can be written to. */
  readonly isStorageUp: () => Promise<boolean>;
  readonly pageViews: PageViewCounter;
  readonly now: () => Date;
}
