/** Submissions as the ingress makes them, and their jobs: each holds exactly 100 AP, from a key without caps, with nothing more to check. */
import { randomUUID } from 'node:crypto';
import { v7 } from 'uuid';
import type { PaidJobPayload } from '../../core/jobs.ts';
import type { Submission } from '../../ingress/data/submissions.ts';

export const HOLD_AP = 100;

export function submissionOf(accountId: string, input: unknown = {}): Submission {
  return {
    id: v7(),
    accountId,
    keyId: randomUUID(),
    area: 'llm',
    task: 'chat/completions',
    modelId: 'chat-test',
    priceId: 1,
    isStream: false,
    ingressId: null,
    quote: { fixedMilliAp: HOLD_AP * 1000, unitMilliAp: 0, minUnits: 1, maxUnits: 1 },
    timeoutSeconds: 600,
    idempotency: undefined,
    caps: { perRequestAp: null, dailyAp: null, monthlyAp: null, grantDailyAp: null },
    isFunded: false,
    isGrantAllowed: false,
    needsPurchased: false,
    input,
  };
}

/** What the job of a submission carries, for a task that wants no input. */
export function payloadOf({ id, accountId }: { id: string; accountId: string }): PaidJobPayload<object> {
  return {
    id,
    accountId,
    modelId: 'test',
    priceId: 1,
    isStream: false,
    ingressId: null,
    holdAp: HOLD_AP,
    units: 1,
    createdAtMs: Date.now(),
    deadlineAtMs: Date.now() + 60_000,
    input: {},
  };
}
