/**
 * Reserve, record and enqueue, in one call to the database shared by all requests of this moment. Each is accepted or refused
 * by itself. When the connection breaks, nobody knows whether the batch was committed: the ids say, once it is back.
 * Large inputs go by a lane of their own, and so do requests that held up or failed a batch: the others do not wait for them.
 * Most requests have nothing to check but a balance of purchased AP: they are tried in a lane that does only that.
 */
import { makeAside } from '../core/aside.ts';
import { type Coalescer, countWithin, makeCoalescer } from '../core/coalesce.ts';
import {
  isConnectionError,
  isTimeoutError,
  isTransientError,
  type Pool,
  sqlStateOf,
  wasNeverSent,
} from '../core/database.ts';
import { ServiceError } from '../core/errors.ts';
import {
  findCommitted,
  isPlain,
  type SubmissionRow as Row,
  type Submission,
  submitFundedRequests,
  submitRequests,
} from './data/submissions.ts';

export type Submitted =
  | { readonly outcome: 'accepted'; readonly holdAp: number }
  /** The idempotency key belongs to this finished request: its answer is given again. */
  | { readonly outcome: 'replay'; readonly requestId: string };

export interface Submit {
  /** Throws ServiceError when refused. */
  (submission: Submission): Promise<Submitted>;
  drain(): Promise<void>;
}

const MAX_BATCH = 100;
/** Of the inputs' JSON; one that is larger goes alone. */
const MAX_BATCH_BYTES = 1024 * 1024;
/** From here on an input has the lane of large ones: one of 19 MB keeps the database busy for half a second. */
const LARGE_INPUT_BYTES = 64 * 1024;
/** How long a request waits for a database that went away before it is given up. */
const OUTAGE_PATIENCE_MS = 15_000;
const RETRY_DELAY_MS = 250;
/** How much longer one waits that may have been committed: to be told of an error and charged must not happen. */
const UNKNOWN_PATIENCE_MS = 60_000;
/** How long a request waits for a balance that somebody has locked. */
const LOCK_PATIENCE_MS = 6_000;
/** Answers of the database that make no sense, each followed by a look at the books. */
const MAX_SURPRISES = 3;

interface Item {
  readonly submission: Submission;
  readonly inputJson: string;
  readonly inputBytes: number;
  /** A call with it ended without an answer. */
  mayBeCommitted: boolean;
}

/** `pool`: of submit's own, at least five connections (one a lane, two aside), with a lock timeout. */
export function makeSubmit(pool: Pool, initialGrantAp: number): Submit {
  const books: Books = { pool, initialGrantAp };
  const lane = { maxBatch: MAX_BATCH, maxInFlight: 1 };
  const aside = makeAside<Item, Row>({
    maxBatch: MAX_BATCH,
    accountOf: ({ submission }) => submission.accountId,
    take: countWithinBytes,
    run: (batch) => runBatch(books, batch, trySubmit),
    patienceMs: LOCK_PATIENCE_MS,
    tooLong: (cause) => new ServiceError('generation_failed', {}, { cause, retryAfterSeconds: 2 }),
  });

  type RunBatch = (batch: readonly Item[]) => Promise<(Row | Promise<Row>)[]>;
  const makeLane = (run: RunBatch): Coalescer<Item, Row | Promise<Row>> =>
    makeCoalescer({ ...lane, take: countWithinBytes, run: aside.guard(run) });
  const runHere: RunBatch = (batch) => runBatch(books, batch, trySubmit);
  const small = makeLane(runHere);
  const large = makeLane(runHere);
  const decideInFull = async (item: Item): Promise<Row> => await small.add(item);
  const funded = makeLane(async (batch) => {
    const rows = await runBatch(books, batch, tryFunded);
    return rows.map((row, index) => row ?? decideInFull(batch[index] as Item));
  });

  function laneOf({ submission, inputBytes }: Item): Coalescer<Item, Row | Promise<Row>> {
    if (inputBytes > LARGE_INPUT_BYTES) return large;
    return submission.isFunded && isPlain(submission) ? funded : small;
  }

  async function submit(submission: Submission): Promise<Submitted> {
    const inputJson = JSON.stringify(submission.input) ?? 'null';
    const inputBytes = Buffer.byteLength(inputJson);
    const item: Item = { submission, inputJson, inputBytes, mayBeCommitted: false };
    try {
      const row = await (aside.has(submission.accountId) ? aside.add(item) : laneOf(item).add(item));
      return toResult(row, submission);
    } catch (error) {
      const row = item.mayBeCommitted ? await findOut(pool, submission) : undefined;
      if (row === undefined) throw error;
      return toResult(row, submission);
    }
  }
  return Object.assign(submit, {
    async drain() {
      await Promise.all([funded.drain(), large.drain()]);
      await small.drain();
      await aside.drain();
    },
  });
}

function countWithinBytes(items: readonly Item[]): number {
  return countWithin(items, ({ inputBytes }) => inputBytes, MAX_BATCH_BYTES);
}

interface Books {
  readonly pool: Pool;
  readonly initialGrantAp: number;
}

/** One call of the database with these requests. */
type Try<Answer extends Row | undefined> = (books: Books, batch: readonly Item[]) => Promise<Answer[]>;

const trySubmit: Try<Row> = ({ pool, initialGrantAp }, batch) => submitRequests(pool, initialGrantAp, batch);
const tryFunded: Try<Row | undefined> = ({ pool }, batch) => submitFundedRequests(pool, batch);

/** Outlives outages and deadlocks; throws what the database says of the batch, and timeouts at once. */
async function runBatch<Answer extends Row | undefined>(
  books: Books,
  batch: readonly Item[],
  attempt: Try<Answer>,
): Promise<(Answer | Row)[]> {
  const deadline = Date.now() + OUTAGE_PATIENCE_MS;
  let surprises = 0;
  for (;;) {
    try {
      if (batch.some((item) => item.mayBeCommitted)) return await resumeBatch(books, batch, attempt);
      return await attempt(books, batch);
    } catch (error) {
      const isLost = isConnectionError(error);
      // its ids are on the books already, or an answer came that the driver could not read
      const isSurprise = !isLost && (isUniqueViolation(error) || sqlStateOf(error) === undefined);
      if (isSurprise || (isLost && !wasNeverSent(error))) {
        for (const item of batch) item.mayBeCommitted = true;
      }
      if (isSurprise) surprises += 1;
      const isWorthWaiting =
        isLost ||
        (isSurprise && surprises < MAX_SURPRISES) ||
        (isTransientError(error) && !isTimeoutError(error));
      if (!isWorthWaiting || Date.now() >= deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
    }
  }
}

function isUniqueViolation(error: unknown): boolean {
  return sqlStateOf(error) === '23505';
}

/** Waits for the database to say whether the request is on its books; where it is not, its error was one and cost nothing. */
async function findOut(pool: Pool, { id }: Submission): Promise<Row | undefined> {
  const deadline = Date.now() + UNKNOWN_PATIENCE_MS;
  for (;;) {
    try {
      return (await findCommitted(pool, [id])).get(id);
    } catch (error) {
      if (Date.now() >= deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
    }
  }
}

/** After a call without an answer: what is on the books was accepted, the rest is submitted again. */
async function resumeBatch<Answer extends Row | undefined>(
  books: Books,
  batch: readonly Item[],
  attempt: Try<Answer>,
): Promise<(Answer | Row)[]> {
  const ids = batch.map(({ submission }) => submission.id);
  const rows = new Map<string, Answer | Row>(await findCommitted(books.pool, ids));
  const missing = batch.filter(({ submission }) => !rows.has(submission.id));
  const fresh = missing.length === 0 ? [] : await attempt(books, missing);
  for (const [index, { submission }] of missing.entries()) rows.set(submission.id, fresh[index] as Answer);
  return ids.map((id) => rows.get(id) as Answer | Row);
}

/** What the database decided; throws ServiceError when that is a refusal. */
export function toResult(row: Row, submission: Pick<Submission, 'id'>): Submitted {
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
    case 'card_required':
      throw new ServiceError(row.outcome);
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
    default:
      throw refusedKey(row.outcome, row.other_request_id);
  }
}

/** Why an Idempotency-Key is refused; `requestId`: whose it is. */
export function refusedKey(outcome: string, requestId: string | null): Error {
  if (outcome === 'idempotency_conflict')
    return new ServiceError('idempotency_conflict', { request_id: requestId });
  if (outcome === 'idempotency_in_progress')
    return new ServiceError('idempotency_in_progress', { request_id: requestId }, { retryAfterSeconds: 1 });
  return new Error(`the database answered ${outcome}`);
}

function secondsUntil(at: Date): number {
  return Math.max(Math.ceil((at.getTime() - Date.now()) / 1000), 1);
}
