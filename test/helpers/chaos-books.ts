/**
 * Compares what callers saw (`chaos-load.ts`) with the books. Every difference is one line that says which request, what its
 * caller saw and what the books say.
 */
import type { Pool } from '../../core/database.ts';
import {
  AP_IN_PER_1K,
  AP_OUT_PER_1K,
  type Attempt,
  fetchRequest,
  MODELS,
  wholeTokens,
} from './chaos-load.ts';
import { selectRows } from './database.ts';

interface BookedRequest {
  readonly id: string;
  readonly account_id: string;
  readonly state: string;
  readonly is_stream: boolean;
  readonly hold_ap: number;
  readonly cost_ap: number | null;
  readonly error_code: string | null;
  readonly idempotency_key: string | null;
  readonly created_at: Date;
  readonly finished_at: Date | null;
  readonly charges: number;
  readonly charged_ap: number;
}

export interface Audit {
  readonly problems: readonly string[];
  readonly summary: string;
}

/** Everything must be final by now. `initialAp`: what every account began with. */
export async function auditBooks(options: {
  pool: Pool;
  attempts: readonly Attempt[];
  origin: string;
  initialAp: number;
}): Promise<Audit> {
  const { pool, attempts, origin } = options;
  const problems: string[] = [];
  const requests = await selectRows<BookedRequest>(
    pool,
    `select q.id, q.account_id, q.state, q.is_stream, q.hold_ap, q.cost_ap, q.error_code, q.idempotency_key, q.created_at,
       q.finished_at, count(l.id) as charges, coalesce(-sum(l.amount_ap), 0)::bigint as charged_ap
     from app.requests q left join app.ledger_entries l on l.request_id = q.id group by q.id`,
  );
  const byId = new Map(requests.map((request) => [request.id, request]));

  for (const request of requests) {
    const problem = faultOfRequest(request);
    if (problem !== undefined) problems.push(`${problem}: ${describeRequest(request)}`);
  }
  problems.push(...(await faultsOfAccounts(pool, options.initialAp)));
  problems.push(...(await faultsOfQueue(pool)));
  problems.push(...faultsOfKeys(requests));

  const uncollected: Attempt[] = [];
  for (const attempt of attempts) {
    const known = attempt.isReplay ? attempt.completionId : attempt.requestId;
    const request = known === undefined ? undefined : byId.get(known);
    const problem = faultOfAttempt(attempt, request);
    if (problem !== undefined)
      problems.push(`${problem}: ${describeAttempt(attempt)}; books: ${describeRequest(request)}`);
    if (attempt.outcome === 'lost' && request !== undefined && charged(request)) uncollected.push(attempt);
  }
  for (const attempt of uncollected) {
    const view = await fetchRequest(origin, attempt.secret, attempt.requestId ?? '');
    if (view?.status !== 'succeeded' || view.result == null)
      problems.push(
        `charged, its connection was cut, and the result cannot be fetched by id (${view?.status}): ${describeAttempt(attempt)}`,
      );
  }
  problems.push(...(await faultsOfTheUnseen(requests, attempts, origin)));
  return { problems, summary: summarise(requests, attempts) };
}

function charged(request: BookedRequest): boolean {
  return (request.cost_ap ?? 0) > 0;
}

function faultOfRequest(request: BookedRequest): string | undefined {
  if (request.finished_at === null || request.cost_ap === null) return 'not final';
  if (request.charges > 1) return 'charged more than once';
  if (request.charged_ap !== request.cost_ap) return 'the charge is not the cost';
  if (request.charges === 0 && request.cost_ap > 0) return 'a cost without a charge';
  return undefined;
}

function faultOfAttempt(attempt: Attempt, request: BookedRequest | undefined): string | undefined {
  const textFault = faultOfText(attempt);
  if (textFault !== undefined) return textFault;
  switch (attempt.outcome) {
    case 'complete':
      return faultOfComplete(attempt, request);
    case 'error':
      if (attempt.status !== undefined && attempt.status >= 400 && attempt.status < 500)
        return attempt.status === 409 && attempt.note.includes('idempotency_in_progress')
          ? undefined
          : 'refused for no reason of the caller';
      return request !== undefined && charged(request) ? 'saw an error and was charged' : undefined;
    case 'left':
    case 'lost':
      return undefined; // charged at most once, which holds for every request
    case 'accepted':
      return 'accepted and never finished';
    default:
      return 'has no outcome';
  }
}

function faultOfComplete(attempt: Attempt, request: BookedRequest | undefined): string | undefined {
  if (request === undefined) return 'saw a whole answer that is not on the books';
  if (request.state !== 'succeeded') return 'saw a whole answer of a request that did not succeed';
  if (request.charges !== 1) return `saw a whole answer and has ${request.charges} charges`;
  const { usage } = attempt;
  if (usage === undefined) return 'was not told the usage';
  const cost = Math.ceil(
    (usage.prompt_tokens * AP_IN_PER_1K + usage.completion_tokens * AP_OUT_PER_1K) / 1000,
  );
  if (cost !== request.cost_ap) return `was served for ${cost} AP and charged another amount`;
  const isTold = attempt.isReplay && attempt.toldCost === 0 ? true : attempt.toldCost === request.cost_ap;
  return isTold ? undefined : `was told ${attempt.toldCost} AP`;
}

/** All of one upstream answer, from its beginning without a hole; a whole one's usage is that answer's. */
function faultOfText(attempt: Attempt): string | undefined {
  const words = attempt.text.split(' ').filter(Boolean);
  const answer = words[0]?.split(':')[0];
  for (const [index, word] of words.entries())
    if (word !== `${answer}:${index}`) return `garbled text (${attempt.text})`;
  if (attempt.outcome !== 'complete') return undefined;
  const isStream = attempt.model === 'stream' || attempt.model === 'long';
  if (words.length !== MODELS[attempt.model].pieces) return `an incomplete answer (${attempt.text})`;
  if (!isStream && attempt.usage?.completion_tokens !== wholeTokens(Number(answer?.slice(1))))
    return `the usage of another answer (${attempt.text})`;
  return undefined;
}

/** Charged requests of which no caller ever learned the id: as many as callers lost before the headers, and collectable. */
async function faultsOfTheUnseen(
  requests: readonly BookedRequest[],
  attempts: readonly Attempt[],
  origin: string,
): Promise<string[]> {
  const problems: string[] = [];
  const seen = new Set(attempts.flatMap(({ requestId }) => requestId ?? []));
  const secretOf = new Map(attempts.map(({ accountId, secret }) => [accountId, secret]));
  const blind = attempts.filter(({ requestId }) => requestId === undefined);
  const unseen = Map.groupBy(
    requests.filter((request) => !seen.has(request.id) && charged(request)),
    ({ account_id }) => account_id,
  );
  for (const [accountId, charges] of unseen) {
    const blindHere = blind.filter((attempt) => attempt.accountId === accountId).length;
    if (charges.length > blindHere)
      problems.push(`account ${accountId}: ${charges.length} charges nobody asked for, ${blindHere} lost`);
    for (const request of charges) {
      const view = await fetchRequest(origin, secretOf.get(accountId) ?? '', request.id);
      const hasLeft = request.state === 'cancelled';
      if (!hasLeft && view?.result == null)
        problems.push(
          `its caller lost the connection, and it cannot be fetched: ${describeRequest(request)}`,
        );
    }
  }
  return problems;
}

function faultsOfKeys(requests: readonly BookedRequest[]): string[] {
  const byKey = Map.groupBy(
    requests.filter((request) => request.idempotency_key !== null && charged(request)),
    (request) => `${request.account_id} ${request.idempotency_key}`,
  );
  return [...byKey.values()]
    .filter((charges) => charges.length > 1)
    .map((charges) => `one idempotency key, charged twice: ${charges.map(describeRequest).join(' and ')}`);
}

async function faultsOfAccounts(pool: Pool, initialAp: number): Promise<string[]> {
  const [check] = await selectRows<{ open_holds: number; drift_ap: number; problems: unknown[] }>(
    pool,
    'select open_holds, drift_ap, problems from app.ledger_check()',
  );
  const problems = (check?.problems ?? ['no answer']).map(
    (problem) => `ledger_check: ${JSON.stringify(problem)}`,
  );
  if (check?.drift_ap !== 0) problems.push(`ledger_check: drift of ${check?.drift_ap} AP`);
  if (check?.open_holds !== 0) problems.push(`ledger_check: ${check?.open_holds} open holds`);
  const wrong = await selectRows<{ account_id: string; balance_ap: number; cost_ap: number }>(
    pool,
    `select b.account_id, b.balance_ap, coalesce(sum(q.cost_ap), 0)::bigint as cost_ap
     from app.balances b left join app.requests q on q.account_id = b.account_id
     group by b.account_id having b.balance_ap <> $1 - coalesce(sum(q.cost_ap), 0)`,
    [initialAp],
  );
  for (const row of wrong)
    problems.push(
      `account ${row.account_id} has ${row.balance_ap} AP after costs of ${row.cost_ap} from ${initialAp}`,
    );
  return problems;
}

/** Nothing waits or is locked any more but what the clock put there. */
async function faultsOfQueue(pool: Pool): Promise<string[]> {
  const jobs = await selectRows<{ id: number; locked_by: string | null; last_error: string | null }>(
    pool,
    `select j.id, j.locked_by, j.last_error from graphile_worker.jobs j where j.task_identifier not like 'maintenance/%'`,
  );
  return jobs.map((job) => `a job is left in the queue: ${JSON.stringify(job)}`);
}

function describeAttempt(attempt: Attempt): string {
  const { n, kind, model, requestId, status, outcome, isReplay, toldCost, web, note, text } = attempt;
  const times = `${new Date(attempt.startedAt).toISOString()} +${attempt.endedAt - attempt.startedAt} ms`;
  return `#${n} ${kind} ${model} ${web} ${times} id ${requestId} saw ${status} ${outcome}${isReplay ? ' (replay)' : ''} told ${toldCost} text "${text.slice(-20)}" ${note.slice(0, 200)}`;
}

function describeRequest(request: BookedRequest | undefined): string {
  if (request === undefined) return 'nothing';
  const { id, state, cost_ap, charges, error_code, created_at, finished_at } = request;
  return `${id} ${state} cost ${cost_ap} charges ${charges} ${error_code ?? ''} ${created_at.toISOString()} – ${finished_at?.toISOString()}`;
}

function summarise(requests: readonly BookedRequest[], attempts: readonly Attempt[]): string {
  const count = <T>(items: readonly T[], name: (item: T) => string): string =>
    [...Map.groupBy(items, name)]
      .map(([key, group]) => `${key} ${group.length}`)
      .sort()
      .join(', ');
  const slowest = attempts.toSorted((a, b) => b.endedAt - b.startedAt - (a.endedAt - a.startedAt))[0];
  return [
    `callers saw: ${count(attempts, ({ outcome }) => outcome ?? 'nothing')}`,
    `errors: ${count(
      attempts.filter(({ outcome }) => outcome === 'error'),
      ({ status, note }) =>
        `${status} ${/"code":"(\w+)"|"error":"(\w+)"/.exec(note)?.slice(1).find(Boolean) ?? ''}`,
    )}`,
    `books: ${count(requests, ({ state, cost_ap }) => `${state}${cost_ap ? '' : ' free'}`)}`,
    slowest === undefined
      ? ''
      : `slowest: ${slowest.kind} ${slowest.model} ${slowest.endedAt - slowest.startedAt} ms`,
  ].join('; ');
}
