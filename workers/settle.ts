/**
 * Settling: how a request ended goes on the books together with the others of this moment. The database decides who ends a
 * request; a worker that comes second is told so. While the database is away settlements wait for it, since the work is done.
 * What held up or failed a batch goes aside: the others do not wait for a balance that somebody has locked.
 */
import { makeAside } from '../core/aside.ts';
import { type AssetFile, assetFileToJson } from '../core/assets/files.ts';
import { countWithin, makeCoalescer } from '../core/coalesce.ts';
import { isConnectionError, isTimeoutError, isTransientError, type Pool } from '../core/database.ts';
import type { ErrorDetails } from '../core/errors.ts';
import type { FinalState } from '../core/relay/frames.ts';

export interface Settlement {
  readonly requestId: string;
  readonly accountId: string;
  readonly state: FinalState;
  readonly costAp: number;
  readonly usage?: Readonly<Record<string, unknown>> | undefined;
  readonly provider?: string | undefined;
  readonly errorCode?: string | undefined;
  readonly errorDetails?: ErrorDetails | undefined;
  readonly startedAt: Date;
  readonly result?: { readonly kind: 'json' | 'events'; readonly body: string } | undefined;
  readonly assets?: readonly AssetFile[] | undefined;
  readonly cacheKey?: string | undefined;
  /** The input came with the job: none is stored that would have to go. */
  readonly inputIsInline: boolean;
}

export interface Settled {
  /** This settlement ended the request. */
  readonly isSettled: boolean;
  /** How it stands on the books. */
  readonly state: FinalState;
  readonly costAp: number;
}

interface Row {
  request_id: string;
  is_settled: boolean;
  state: FinalState;
  cost_ap: number;
}

const SETTLE = {
  name: 'settle_requests',
  text: 'select request_id, is_settled, state, cost_ap from app.settle_requests($1, $2)',
};
const MAX_BATCH = 100;
/** Of the answers that are stored; one that is larger goes alone. The driver has a batch in memory several times. */
const MAX_BATCH_CHARACTERS = 4 * 1024 * 1024;
const OUTAGE_PATIENCE_MS = 60_000;
const LOCK_PATIENCE_MS = 60_000;
const RETRY_DELAY_MS = 250;

export interface Settler {
  add(settlement: Settlement): Promise<Settled>;
  /** Resolves when nothing is waiting or under way. */
  drain(): Promise<void>;
}

/** `pool`: with a lock timeout. */
export function makeSettler(pool: Pool): Settler {
  const run = (batch: readonly Settlement[]): Promise<Settled[]> => settleBatch(pool, batch);
  const aside = makeAside<Settlement, Settled>({
    maxBatch: MAX_BATCH,
    accountOf: ({ accountId }) => accountId,
    take: countWithinSize,
    run,
    patienceMs: LOCK_PATIENCE_MS,
    tooLong: (cause) => new Error('a balance stayed locked while a request was to be settled', { cause }),
  });
  const lane = makeCoalescer<Settlement, Settled | Promise<Settled>>({
    maxBatch: MAX_BATCH,
    maxInFlight: 1,
    take: countWithinSize,
    run: aside.guard(run),
  });
  return {
    async add(settlement) {
      return await (aside.has(settlement.accountId) ? aside.add(settlement) : lane.add(settlement));
    },
    async drain() {
      await lane.drain();
      await aside.drain();
    },
  };
}

function countWithinSize(batch: readonly Settlement[]): number {
  return countWithin(batch, ({ result }) => result?.body.length ?? 0, MAX_BATCH_CHARACTERS);
}

/** Outlives outages and deadlocks; throws what the database says of the batch, and timeouts at once. */
async function settleBatch(pool: Pool, batch: readonly Settlement[]): Promise<Settled[]> {
  const deadline = Date.now() + OUTAGE_PATIENCE_MS;
  const values = [JSON.stringify(batch.map(toJson)), batch.map(({ requestId }) => requestId).sort()];
  for (;;) {
    try {
      const { rows } = await pool.query<Row>({ ...SETTLE, values });
      const byId = new Map(rows.map((row) => [row.request_id, row]));
      return batch.map((settlement) => {
        const row = byId.get(settlement.requestId);
        if (row === undefined) throw new Error('settle_requests does not know the request');
        // after a lost connection our own commit looks like somebody else's, and may be: the ingress looks at what is stored
        return { isSettled: row.is_settled, state: row.state, costAp: row.cost_ap };
      });
    } catch (error) {
      const mayPass = isConnectionError(error) || (isTransientError(error) && !isTimeoutError(error));
      if (!mayPass || Date.now() >= deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
    }
  }
}

/** A provider's words may hold what `jsonb` refuses: NUL, half of a surrogate pair. */
function storable(details: ErrorDetails | undefined): unknown {
  if (details === undefined) return undefined;
  return JSON.parse(JSON.stringify(details), (_name, value: unknown) =>
    typeof value === 'string' ? value.toWellFormed().replaceAll('\u0000', '\ufffd') : value,
  );
}

/** The shape of app.settlement. */
function toJson(settlement: Settlement): Record<string, unknown> {
  return {
    request_id: settlement.requestId,
    state: settlement.state,
    cost_ap: settlement.costAp,
    usage: settlement.usage,
    provider: settlement.provider,
    error_code: settlement.errorCode,
    error_details: storable(settlement.errorDetails),
    started_at: settlement.startedAt.toISOString(),
    result_kind: settlement.result?.kind,
    result: settlement.result?.body,
    assets: settlement.assets?.map(assetFileToJson),
    cache_key: settlement.cacheKey,
    input_is_inline: settlement.inputIsInline,
  };
}
