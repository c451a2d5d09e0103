/** The two statements of submitting: `app.submit_requests`, and the look at the books where its answer was lost. */
import type { Pool } from '../../core/database.ts';
import type { Quote } from '../../core/pricing.ts';

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
      JSON.stringify(batch.map(({ submission }, index) => toJson(submission, index))),
      `[${batch.map(({ inputJson }) => inputJson).join(',')}]`,
      initialGrantAp,
    ],
  });
  return rows;
}

/** Of these requests, the ones on the books, as if they were being accepted now. */
export async function findCommitted(pool: Pool, ids: readonly string[]): Promise<Map<string, SubmissionRow>> {
  const { rows } = await pool.query<{ id: string; hold_ap: number }>({ ...FIND_COMMITTED, values: [ids] });
  return new Map(rows.map((row) => [row.id, acceptedRow(row.hold_ap)]));
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
    needs_purchased: submission.needsPurchased,
  };
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
