/** The statements of submitting: `app.submit_funded_requests`, `app.submit_requests`, and the look at the books where an answer was lost. */
import { type Pool, sqlStateOf } from '../../core/database.ts';
import type { PaidJobPayload } from '../../core/jobs.ts';
import { milliApToAp, type Quote } from '../../core/pricing.ts';

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
  /** Some of the balance is purchased AP, as far as is known here. */
  readonly isFunded: boolean;
  /** Granted AP may not be spent: no card on file. */
  readonly needsPurchased: boolean;
  /** The job's data. */
  readonly input: unknown;
}

/** What app.submit_requests answers for one request. */
export interface SubmissionRow {
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
const SUBMIT_FUNDED = {
  name: 'submit_funded_requests',
  text: 'select app.submit_funded_requests($1, $2) as accepted',
};
/** What app.submit_funded_requests raises when what it saw of a balance holds no longer. */
const FUNDS_CHANGED = 'SV001';
const FIND_COMMITTED = {
  name: 'find_committed_requests',
  text: 'select id, hold_ap from app.requests where id = any ($1::uuid[])',
};

/** Accepts or refuses each request; `inputJson` is its job's data. Answers in their order. */
export async function submitRequests(
  pool: Pool,
  initialGrantAp: number,
  batch: readonly { readonly submission: Submission; readonly inputJson: string }[],
): Promise<SubmissionRow[]> {
  const { rows } = await pool.query<SubmissionRow>({
    ...SUBMIT,
    values: [
      JSON.stringify(batch.map(({ submission }, index) => submissionToJson(submission, index))),
      `[${batch.map(({ inputJson }) => inputJson).join(',')}]`,
      initialGrantAp,
    ],
  });
  return rows;
}

/** What `submitRequests` would say of it now; nothing is held, counted or locked. */
export async function foreseeSubmission(
  pool: Pool,
  initialGrantAp: number,
  submission: Submission,
): Promise<SubmissionRow> {
  const { rows } = await pool.query<SubmissionRow>({
    name: 'foresee_submission',
    text: `select n, outcome, hold_ap, required_ap, available_ap, held_ap, cap_ap, resets_at, other_request_id
      from app.foresee_submission($1, $2)`,
    values: [JSON.stringify(submissionToJson(submission, 0)), initialGrantAp],
  });
  return rows[0] as SubmissionRow;
}

/**
 * Accepts those whose account's purchased AP pays for all the batch asks of it; undefined for each of the others, which
 * `submitRequests` decides. For submissions that are `isPlain` only.
 */
export async function submitFundedRequests(
  pool: Pool,
  batch: readonly { readonly submission: Submission; readonly inputJson: string }[],
): Promise<(SubmissionRow | undefined)[]> {
  const rows = batch.map(({ submission }, index) => toFundedJson(submission, index));
  const jobs = batch.map(({ submission, inputJson }) => toJobJson(submission, inputJson));
  let accepted: Set<number>;
  try {
    const answer = await pool.query<{ accepted: number[] }>({
      ...SUBMIT_FUNDED,
      values: [JSON.stringify(rows), `[${jobs.join(',')}]`],
    });
    accepted = new Set(answer.rows[0]?.accepted);
  } catch (error) {
    if (sqlStateOf(error) !== FUNDS_CHANGED) throw error;
    accepted = new Set();
  }
  return batch.map(({ submission }, index) =>
    accepted.has(index + 1) ? acceptedRow(holdOf(submission)) : undefined,
  );
}

/** Nothing but the balance has to be looked up for it. */
export function isPlain(submission: Submission): boolean {
  const { idempotency, caps } = submission;
  const hasNoCaps = caps.perRequestAp === null && caps.dailyAp === null && caps.monthlyAp === null;
  const milliAp = holdMilliAp(submission);
  // what costs nothing is decided by rules of the account that the lane does not look at
  return idempotency === undefined && hasNoCaps && milliAp > 0 && Number.isSafeInteger(milliAp);
}

/** Of these requests, the ones on the books, as if they were being accepted now. */
export async function findCommitted(pool: Pool, ids: readonly string[]): Promise<Map<string, SubmissionRow>> {
  const { rows } = await pool.query<{ id: string; hold_ap: number }>({ ...FIND_COMMITTED, values: [ids] });
  return new Map(rows.map((row) => [row.id, acceptedRow(row.hold_ap)]));
}

/** What app.submission and app.funded_submission have in common. */
function sharedColumns(submission: Submission, index: number): Record<string, unknown> {
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
    timeout_seconds: submission.timeoutSeconds,
    is_grant_allowed: submission.isGrantAllowed,
  };
}

/** The shape of app.submission. `index`: in its batch. */
export function submissionToJson(submission: Submission, index: number): Record<string, unknown> {
  const { quote, caps, idempotency } = submission;
  return {
    ...sharedColumns(submission, index),
    fixed_milli_ap: quote.fixedMilliAp,
    unit_milli_ap: quote.unitMilliAp,
    min_units: quote.minUnits,
    max_units: quote.maxUnits,
    idempotency_key: idempotency?.key,
    body_sha256: idempotency?.bodySha256,
    cap_per_request_ap: caps.perRequestAp,
    cap_daily_ap: caps.dailyAp,
    cap_monthly_ap: caps.monthlyAp,
    grant_daily_cap_ap: caps.grantDailyAp,
    needs_purchased: submission.needsPurchased,
  };
}

/** The most it can cost: what is held where the balance is no limit. */
function holdOf(submission: Submission): number {
  return milliApToAp(holdMilliAp(submission));
}

function holdMilliAp({ quote }: Submission): number {
  return quote.fixedMilliAp + quote.maxUnits * quote.unitMilliAp;
}

/** The shape of app.funded_submission. */
function toFundedJson(submission: Submission, index: number): Record<string, unknown> {
  return {
    ...sharedColumns(submission, index),
    hold_ap: holdOf(submission),
  };
}

/** The job as app.submit_requests writes it, around an input that is JSON already. */
function toJobJson(submission: Submission, inputJson: string): string {
  const createdAtMs = Date.now();
  const payload: Omit<PaidJobPayload, 'input'> = {
    id: submission.id,
    accountId: submission.accountId,
    modelId: submission.modelId,
    priceId: submission.priceId,
    isStream: submission.isStream,
    ingressId: submission.ingressId,
    holdAp: holdOf(submission),
    units: submission.quote.maxUnits,
    createdAtMs,
    deadlineAtMs: createdAtMs + submission.timeoutSeconds * 1000,
  };
  return `${JSON.stringify(payload).slice(0, -1)},"input":${inputJson}}`;
}

function acceptedRow(holdAp: number): SubmissionRow {
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
