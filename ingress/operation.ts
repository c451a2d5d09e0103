/**
 * Paid operations that need no provider: no job, no relay, one call of the database that does the work and charges for it
 * (app.charge_request), or does neither. The way of paid.ts otherwise: same checks, same Idempotency-Key, a request on the books.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  isConnectionError,
  isTimeoutError,
  isTransientError,
  type Pool,
  sqlStateOf,
  wasNeverSent,
} from '../core/database.ts';
import { type ErrorCode, isErrorCode, ServiceError } from '../core/errors.ts';
import { type Price, quoteCall } from '../core/pricing.ts';
import { type Context, callerOf } from './context.ts';
import { findRequest } from './data/requests.ts';
import { findCommitted, type SubmissionRow, submissionToJson } from './data/submissions.ts';
import { priceOf } from './models.ts';
import { submissionOf } from './paid.ts';
import { whenLocked } from './results.ts';
import type { Services } from './services.ts';
import { toResult } from './submit.ts';

export interface Operation {
  readonly task: string;
  /** Its id in the catalogue. */
  readonly modelId: string;
  readonly price: Price;
  readonly rawBody: Buffer;
}

/** What the database is given: app.submission as JSON, and the initial grant. */
export interface Charge {
  readonly submission: string;
  readonly initialGrantAp: number;
}

/** It is over when the call of the database is: a hold that stays is none of this. */
const TIMEOUT_SECONDS = 60;
const MAX_TRIES = 3;
const RETRY_DELAY_MS = 50;
/**
 * How long the books are asked about an operation that may have been charged: to be told of an error and charged must not happen.
 * Longer than any statement may take, so that what the lost call still did is on them.
 */
const UNKNOWN_PATIENCE_MS = 60_000;
const OUTAGE_DELAY_MS = 250;
/** Refusals that only the operation itself can find, by their error codes. */
const REFUSALS: ReadonlySet<string> = new Set<ErrorCode>([
  'not_found',
  'gone',
  'expired',
  'entry_already_certified',
]);
/** What is done without a charge. */
const FREE: ReadonlySet<string> = new Set(['unchanged', 'republished']);

/** Checks 6 and 7. The lists of allowed models are no bar: the caller names an operation, not a model. */
export function operationPrice({ catalogue, now }: Pick<Services, 'catalogue' | 'now'>, id: string): Price {
  const model = catalogue.current().models.get(id);
  if (model === undefined) throw new ServiceError('model_not_found', { param: 'model' });
  return priceOf(model, now());
}

/**
 * Answers with the stored result when it was charged or is replayed. Otherwise returns the outcome: it was free, and the answer is
 * the route's. Throws ServiceError when it was refused.
 */
export async function runOperation(
  ctx: Context,
  services: Services,
  operation: Operation,
  perform: (charge: Charge) => Promise<SubmissionRow>,
): Promise<string | undefined> {
  const submission = submissionOf(
    ctx,
    services,
    {
      area: 'images',
      task: operation.task,
      modelId: operation.modelId,
      price: operation.price,
      quote: quoteCall(operation.price.ap ?? 0),
      timeoutSeconds: TIMEOUT_SECONDS,
      isStream: false,
      input: null,
      rawBody: operation.rawBody,
    },
    null,
  );
  const row = await tried(services.pool, submission.id, () =>
    perform({
      submission: JSON.stringify(submissionToJson(submission, 0)),
      initialGrantAp: services.config.initialGrantAp,
    }),
  );
  if (FREE.has(row.outcome)) return row.outcome;
  if (REFUSALS.has(row.outcome) && isErrorCode(row.outcome)) throw new ServiceError(row.outcome);
  const submitted = toResult(row, submission);
  const isReplay = submitted.outcome === 'replay';
  const id = isReplay ? submitted.requestId : submission.id;
  const request = await outliveOutage(() => findRequest(services.pool, id, callerOf(ctx).accountId));
  if (request?.result == null) throw new ServiceError('expired');
  if (isReplay) ctx.set('Idempotency-Replayed', 'true');
  ctx.set('x-svc-model', operation.modelId);
  ctx.set('x-svc-ap-cost', String(isReplay ? 0 : (request.costAp ?? 0)));
  ctx.type = 'application/json';
  ctx.body = request.result.body;
  return undefined;
}

/**
 * Once more after a deadlock. A balance that stays locked is told as what is to be tried later. Where an answer is lost, the books
 * say whether it was charged; where they do not yet, the same operation is done again, which waits for the lost one.
 */
async function tried(pool: Pool, id: string, perform: () => Promise<SubmissionRow>): Promise<SubmissionRow> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await perform();
    } catch (error) {
      if (isConnectionError(error) && !wasNeverSent(error)) return await resumed(pool, id, perform);
      if (isTimeoutError(error) || !isTransientError(error) || tries === MAX_TRIES) throw whenLocked(error);
      await sleep(RETRY_DELAY_MS);
    }
  }
}

/** After a call without an answer. A refusal may be for what that call did: the books have the last word. */
function resumed(pool: Pool, id: string, perform: () => Promise<SubmissionRow>): Promise<SubmissionRow> {
  const committed = async (): Promise<SubmissionRow | undefined> => (await findCommitted(pool, [id])).get(id);
  return outliveOutage(async () => {
    const known = await committed();
    if (known !== undefined) return known;
    const row = await perform();
    return row.outcome === 'accepted' ? row : ((await committed()) ?? row);
  });
}

/** Once more for as long as the database cannot be reached, or is held up; `23505`: both calls of one operation came through. */
async function outliveOutage<T>(work: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + UNKNOWN_PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isWorthWaiting =
        isConnectionError(error) || isTransientError(error) || sqlStateOf(error) === '23505';
      if (!isWorthWaiting || Date.now() >= deadline) throw error;
      await sleep(OUTAGE_DELAY_MS);
    }
  }
}
