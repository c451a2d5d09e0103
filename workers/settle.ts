/**
 * Settling: how a request ended goes on the books together with the others of this moment. The database decides who ends a
 * request; a worker that comes second is told so. While the database is away settlements wait for it, since the work is done.
 */
import { type AssetFile, assetFileToJson } from '../core/assets/files.ts';
import { type Coalescer, makeCoalescer } from '../core/coalesce.ts';
import { isConnectionError, isTransientError, type Pool } from '../core/database.ts';
import type { ErrorDetails } from '../core/errors.ts';
import type { FinalState } from '../core/relay/frames.ts';

export interface Settlement {
  readonly requestId: string;
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
const OUTAGE_PATIENCE_MS = 60_000;
const RETRY_DELAY_MS = 250;

export function makeSettler(pool: Pool): Coalescer<Settlement, Settled> {
  return makeCoalescer<Settlement, Settled>({
    run: (batch) => settleBatch(pool, batch),
    maxBatch: MAX_BATCH,
    maxInFlight: 1,
  });
}

async function settleBatch(pool: Pool, batch: readonly Settlement[]): Promise<Settled[]> {
  const deadline = Date.now() + OUTAGE_PATIENCE_MS;
  const ids = batch.map(({ requestId }) => requestId).sort();
  for (;;) {
    try {
      const { rows } = await pool.query<Row>({
        ...SETTLE,
        values: [JSON.stringify(batch.map(toJson)), ids],
      });
      const byId = new Map(rows.map((row) => [row.request_id, row]));
      return batch.map((settlement) => {
        const row = byId.get(settlement.requestId);
        if (row === undefined) throw new Error('settle_requests does not know the request');
        // after a lost connection our own commit looks like somebody else's, and may be: the ingress looks at what is stored
        return { isSettled: row.is_settled, state: row.state, costAp: row.cost_ap };
      });
    } catch (error) {
      // one settlement the database cannot take, or not now, must not keep its neighbours off the books
      if (batch.length > 1 && !isConnectionError(error)) {
        return (await Promise.all(batch.map((one) => settleBatch(pool, [one])))).flat();
      }
      const mayPass = isConnectionError(error) || isTransientError(error);
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
