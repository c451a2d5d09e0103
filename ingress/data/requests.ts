/**
 * Reading requests back: their state for pollers, their results for whoever waited. Results are kept 24 hours, counted from the request.
 */
import type { Pool } from '../../core/database.ts';
import type { FinalState } from '../../core/relay/frames.ts';

export const RESULT_RETENTION_HOURS = 24;

export type RequestState = 'queued' | 'running' | FinalState;

export interface StoredResult {
  readonly kind: 'json' | 'events';
  readonly body: string;
}

export interface FinishedRequest {
  readonly id: string;
  readonly state: FinalState;
  readonly costAp: number;
  readonly errorCode: string | null;
  readonly errorDetails: Record<string, unknown> | null;
  readonly result: StoredResult | null;
}

/** A request with its result, while that is kept. */
export type RequestWithResult = RequestRow & { readonly task: string; readonly result: StoredResult | null };

export interface RequestRow {
  readonly id: string;
  readonly area: string;
  readonly modelId: string;
  readonly state: RequestState;
  readonly isStream: boolean;
  readonly holdAp: number;
  readonly costAp: number | null;
  readonly usage: Record<string, unknown> | null;
  readonly errorCode: string | null;
  readonly errorDetails: Record<string, unknown> | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
}

const COLUMNS = `q.id, q.area, q.model_id as "modelId", q.state, q.is_stream as "isStream", q.hold_ap as "holdAp",
  q.cost_ap as "costAp", q.usage, q.error_code as "errorCode", q.error_details as "errorDetails", q.created_at as "createdAt",
  q.started_at as "startedAt", q.finished_at as "finishedAt"`;

/** A request that a worker has taken up, or one that has ended. */
export type BegunRequest = FinishedRequest | { readonly id: string; readonly state: 'running' };

const FIND_BEGUN = {
  name: 'find_begun_requests',
  text: `select q.id, q.state, q.cost_ap as "costAp", q.error_code as "errorCode", q.error_details as "errorDetails",
      case when r.request_id is not null then json_build_object('kind', r.kind, 'body', r.body) end as result
    from app.requests q left join app.request_results r on r.request_id = q.id
    where q.id = any ($1::uuid[]) and q.state <> 'queued'`,
};

/** Of these requests, those that wait for a worker no more; the finished ones with their results. */
export async function findBegun(pool: Pool, ids: readonly string[]): Promise<BegunRequest[]> {
  const { rows } = await pool.query<BegunRequest>({ ...FIND_BEGUN, values: [ids] });
  return rows;
}

/** The body as a column of its own: within JSON an answer of many megabytes would be there twice. */
const FIND_REQUEST = {
  name: 'find_request',
  text: `select ${COLUMNS}, q.account_id as "accountId", q.task, r.kind as "resultKind", r.body as "resultBody"
    from app.requests q left join app.request_results r
      on r.request_id = q.id and q.created_at > now() - interval '${RESULT_RETENTION_HOURS} hours'
    where q.id = $1 and q.account_id = $2`,
};

type FoundRequest = Omit<RequestWithResult, 'result'> &
  (
    | { readonly resultKind: null; readonly resultBody: null }
    | { readonly resultKind: StoredResult['kind']; readonly resultBody: string }
  );

export async function findRequest(
  pool: Pool,
  id: string,
  accountId: string,
): Promise<RequestWithResult | undefined> {
  const { rows } = await pool.query<FoundRequest>({
    ...FIND_REQUEST,
    values: [id, accountId],
  });
  if (rows[0] === undefined) return undefined;
  const { resultKind, resultBody, ...request } = rows[0];
  return { ...request, result: resultKind === null ? null : { kind: resultKind, body: resultBody } };
}

export interface RequestFilter {
  readonly accountId: string;
  /** Only requests older than this one. */
  readonly before: string | undefined;
  readonly state: string | undefined;
  readonly area: string | undefined;
  readonly from: Date | undefined;
  readonly to: Date | undefined;
  readonly limit: number;
}

/** Bounds that are not asked for are the ends of all ids, so that one plan begins at the cursor whatever is given. */
const LIST_REQUESTS = {
  name: 'list_requests',
  text: `select ${COLUMNS} from app.requests q
    where q.account_id = $1
      and q.id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      and q.id >= coalesce(app.uuid_floor($5::timestamptz), '00000000-0000-0000-0000-000000000000')
      and q.id < coalesce(app.uuid_floor($6::timestamptz), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      and ($3::text is null or q.state = $3)
      and ($4::text is null or q.area = $4)
    order by q.id desc
    limit $7`,
};

/** Newest first. */
export async function listRequests(pool: Pool, filter: RequestFilter): Promise<RequestRow[]> {
  const { rows } = await pool.query<RequestRow>({
    ...LIST_REQUESTS,
    values: [
      filter.accountId,
      filter.before ?? null,
      filter.state ?? null,
      filter.area ?? null,
      filter.from ?? null,
      filter.to ?? null,
      filter.limit,
    ],
  });
  return rows;
}

/** Ends requests without a charge, whoever's they are; one that has ended stays as it is. */
export async function voidRequests(pool: Pool, ids: readonly string[]): Promise<void> {
  await pool.query({
    name: 'void_requests',
    text: 'select count(*) from unnest($1::uuid[]) r(id), lateral app.cancel_request(r.id, null)',
    values: [ids],
  });
}

const CANCEL_REQUEST = {
  name: 'cancel_request',
  text: 'select is_settled as "isSettled", state from app.cancel_request($1, $2)',
};

export async function cancelRequest(pool: Pool, id: string, accountId: string): Promise<boolean> {
  const { rows } = await pool.query<{ isSettled: boolean }>({ ...CANCEL_REQUEST, values: [id, accountId] });
  return rows[0]?.isSettled === true;
}

/** Ends a request that no worker has said to be running. */
export async function cancelQueuedRequest(pool: Pool, id: string, accountId: string): Promise<void> {
  await pool.query({
    name: 'cancel_queued_request',
    text: `select c.is_settled
      from app.requests q, lateral app.cancel_request(q.id, q.account_id) c
      where q.id = $1 and q.account_id = $2 and q.state = 'queued'`,
    values: [id, accountId],
  });
}

/** What becomes of an answer from the cache under an Idempotency-Key (app.claim_cached_answer). */
export async function claimCachedAnswer(
  pool: Pool,
  accountId: string,
  { key, bodySha256 }: { readonly key: string; readonly bodySha256: string },
  requestId: string,
): Promise<{ readonly outcome: string; readonly otherRequestId: string }> {
  const { rows } = await pool.query<{ outcome: string; otherRequestId: string }>({
    name: 'claim_cached_answer',
    text: 'select outcome, request_id as "otherRequestId" from app.claim_cached_answer($1, $2, $3, $4)',
    values: [accountId, key, bodySha256, requestId],
  });
  return rows[0] as { outcome: string; otherRequestId: string };
}
