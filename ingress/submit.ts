/**
 * Reserve, record and enqueue, in one call to the database shared by all requests of this moment. Each is accepted or refused
 * by itself. When the connection breaks, nobody knows whether the batch was committed: the ids say, once it is back.
 */
import { makeCoalescer } from '../core/coalesce.ts';
import { isConnectionError, isTransientError, type Pool, wasNeverSent } from '../core/database.ts';
import { ServiceError } from '../core/errors.ts';
import type { Quote } from '../core/pricing.ts';

export interface Submission {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly area: string;
  readonly task: string;
  readonly modelId: string;
  readonly priceId: number;
  readonly isStream: boolean;
  /** The ingress that waits for the answer; null: nobody. */
  readonly ingressId: string | null;
  readonly quote: Quote;
  readonly timeoutSeconds: number;
  readonly idempotency: { readonly key: string; readonly bodySha256: string } | undefined;
  readonly caps: {
    readonly perRequestAp: number | null;
    readonly dailyAp: number | null;
    readonly monthlyAp: number | null;
    readonly grantDailyAp: number | null;
  };
  readonly isGrantAllowed: boolean;
  /** The job's data. */
  readonly input: unknown;
}

export type Submitted =
  | { readonly outcome: 'accepted'; readonly holdAp: number }
  /** The idempotency key belongs to this finished request: its answer is given again. */
  | { readonly outcome: 'replay'; readonly requestId: string };

export interface Submit {
  /** Throws ServiceError when refused. */
  (submission: Submission): Promise<Submitted>;
  drain(): Promise<void>;
}

interface Row {
  n: number;
  outcome: string;
  hold_ap: number | null;
  required_ap: number;
  available_ap: number;
  held_ap: number;
  cap_ap: number | null;
  resets_at: Date | null;
  other_request_id: string | null;
}

const SUBMIT = {
  name: 'submit_requests',
  text: 'select n, outcome, hold_ap, required_ap, available_ap, held_ap, cap_ap, resets_at, other_request_id from app.submit_requests($1, $2, $3)',
};
const FIND_COMMITTED = {
  name: 'find_committed_requests',
  text: 'select id, hold_ap from app.requests where id = any ($1::uuid[])',
};

const MAX_BATCH = 100;
/** How long a request waits for a database that went away before it is given up. */
const OUTAGE_PATIENCE_MS = 15_000;
const RETRY_DELAY_MS = 250;
/** How much longer one waits that may have been committed: to be told of an error and charged must not happen. */
const UNKNOWN_PATIENCE_MS = 60_000;

/** The database went away with the batch and has not come back: it may be on the books. */
class OutcomeUnknown extends Error {}

export function makeSubmit(pool: Pool, initialGrantAp: number): Submit {
  const coalescer = makeCoalescer<Submission, Row>({
    run: (batch) => runBatch(pool, initialGrantAp, batch),
    maxBatch: MAX_BATCH,
    maxInFlight: 1,
  });
  const submit = async (submission: Submission): Promise<Submitted> =>
    toResult(
      await coalescer.add(submission).catch((error: unknown) => findOut(pool, submission, error)),
      submission,
    );
  return Object.assign(submit, { drain: () => coalescer.drain() });
}

async function runBatch(
  pool: Pool,
  initialGrantAp: number,
  batch: readonly Submission[],
  isUncertain = false,
): Promise<Row[]> {
  const deadline = Date.now() + OUTAGE_PATIENCE_MS;
  let mayBeCommitted = isUncertain;
  for (;;) {
    try {
      if (mayBeCommitted) return await resumeBatch(pool, initialGrantAp, batch);
      return await callSubmit(pool, initialGrantAp, batch);
    } catch (error) {
      if (isConnectionError(error)) {
        mayBeCommitted ||= !wasNeverSent(error);
        if (Date.now() >= deadline) {
          throw mayBeCommitted ? new OutcomeUnknown('the database is away', { cause: error }) : error;
        }
      } else if (mayBeCommitted && isUniqueViolation(error) && Date.now() < deadline) {
        // committed after all, a moment after it was looked for: look again
      } else if (!isTransientError(error)) {
        // one request the database cannot take must not refuse its neighbours
        if (batch.length > 1) {
          return (
            await Promise.all(batch.map((one) => runBatch(pool, initialGrantAp, [one], mayBeCommitted)))
          ).flat();
        }
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
    }
  }
}

function isUniqueViolation(error: unknown): boolean {
  return (error as { code?: unknown }).code === '23505';
}

/** Waits for the database to say whether the request is on its books; where it is not, the error was one and cost nothing. */
async function findOut(pool: Pool, submission: Submission, error: unknown): Promise<Row> {
  if (!(error instanceof OutcomeUnknown)) throw error;
  const deadline = Date.now() + UNKNOWN_PATIENCE_MS;
  for (;;) {
    try {
      const { rows } = await pool.query<{ hold_ap: number }>({
        ...FIND_COMMITTED,
        values: [[submission.id]],
      });
      if (rows[0] !== undefined) return acceptedRow(rows[0].hold_ap);
      break;
    } catch (stillAway) {
      if (!isConnectionError(stillAway) || Date.now() >= deadline) throw stillAway;
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
    }
  }
  throw error.cause;
}

/** After a lost connection: what is on the books was accepted, the rest is submitted again. */
async function resumeBatch(pool: Pool, initialGrantAp: number, batch: readonly Submission[]): Promise<Row[]> {
  const { rows } = await pool.query<{ id: string; hold_ap: number }>({
    ...FIND_COMMITTED,
    values: [batch.map((submission) => submission.id)],
  });
  const committed = new Map(rows.map((row) => [row.id, row.hold_ap]));
  const missing = batch.filter((submission) => !committed.has(submission.id));
  const fresh = missing.length === 0 ? [] : await callSubmit(pool, initialGrantAp, missing);
  const freshById = new Map(missing.map((submission, index) => [submission.id, fresh[index] as Row]));
  return batch.map(
    (submission) => freshById.get(submission.id) ?? acceptedRow(committed.get(submission.id) ?? 0),
  );
}

async function callSubmit(pool: Pool, initialGrantAp: number, batch: readonly Submission[]): Promise<Row[]> {
  const { rows } = await pool.query<Row>({
    ...SUBMIT,
    values: [
      JSON.stringify(batch.map(toJson)),
      JSON.stringify(batch.map(({ input }) => input)),
      initialGrantAp,
    ],
  });
  return rows;
}

/** The shape of app.submission. */
function toJson(submission: Submission, index: number): Record<string, unknown> {
  const { quote, caps, idempotency } = submission;
  return {
    n: index + 1,
    id: submission.id,
    account_id: submission.accountId,
    key_id: submission.keyId,
    area: submission.area,
    task: submission.task,
    model_id: submission.modelId,
    price_id: submission.priceId,
    is_stream: submission.isStream,
    ingress_id: submission.ingressId,
    fixed_milli_ap: quote.fixedMilliAp,
    unit_milli_ap: quote.unitMilliAp,
    min_units: quote.minUnits,
    max_units: quote.maxUnits,
    timeout_seconds: submission.timeoutSeconds,
    idempotency_key: idempotency?.key,
    body_sha256: idempotency?.bodySha256,
    cap_per_request_ap: caps.perRequestAp,
    cap_daily_ap: caps.dailyAp,
    cap_monthly_ap: caps.monthlyAp,
    grant_daily_cap_ap: caps.grantDailyAp,
    is_grant_allowed: submission.isGrantAllowed,
  };
}

function acceptedRow(holdAp: number): Row {
  return {
    n: 0,
    outcome: 'accepted',
    hold_ap: holdAp,
    required_ap: holdAp,
    available_ap: 0,
    held_ap: 0,
    cap_ap: null,
    resets_at: null,
    other_request_id: null,
  };
}

function toResult(row: Row, submission: Submission): Submitted {
  switch (row.outcome) {
    case 'accepted':
      return { outcome: 'accepted', holdAp: row.hold_ap ?? 0 };
    case 'replay':
      return { outcome: 'replay', requestId: row.other_request_id ?? submission.id };
    case 'insufficient_ap':
      throw new ServiceError('insufficient_ap', {
        required_ap: row.required_ap,
        available_ap: Math.max(row.available_ap, 0),
        held_ap: row.held_ap,
      });
    case 'account_too_new':
      throw new ServiceError('account_too_new');
    case 'request_over_key_cap':
      throw new ServiceError(
        'request_over_key_cap',
        {
          cap_ap: row.cap_ap,
          requested_ap: row.required_ap,
          ...(row.resets_at === null ? {} : { resets_at: row.resets_at.toISOString() }),
        },
        row.resets_at === null ? {} : { retryAfterSeconds: secondsUntil(row.resets_at) },
      );
    case 'user_daily_cap':
      throw new ServiceError(
        'user_daily_cap',
        { cap_ap: row.cap_ap },
        row.resets_at === null ? {} : { retryAfterSeconds: secondsUntil(row.resets_at) },
      );
    case 'idempotency_conflict':
      throw new ServiceError('idempotency_conflict', { request_id: row.other_request_id });
    case 'idempotency_in_progress':
      throw new ServiceError(
        'idempotency_in_progress',
        { request_id: row.other_request_id },
        { retryAfterSeconds: 1 },
      );
    default:
      throw new Error(`submit_requests answered ${row.outcome}`);
  }
}

function secondsUntil(at: Date): number {
  return Math.max(Math.ceil((at.getTime() - Date.now()) / 1000), 1);
}
