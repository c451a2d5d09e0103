/** After the load: the service's own check of its ledger must be clean, and hold at least what was answered. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadGenerator } from './load-generator.ts';
import { renderTable } from './report.ts';
import type { Service } from './service.ts';
import { checkLedger, type LedgerCheck } from './service-commands.ts';

/** Requests cut off at the end of a timed job are voided in the background; their holds must be gone by then. */
const HOLDS_RELEASED_WITHIN_MS = 60_000;
const POLL_INTERVAL_MS = 1000;

export interface BooksReport {
  readonly markdown: string;
  readonly problems: readonly string[];
}

async function settledLedger(service: Service): Promise<LedgerCheck> {
  const endsAt = performance.now() + HOLDS_RELEASED_WITHIN_MS;
  let check = await checkLedger(service.environment);
  while (check.open_holds > 0 && performance.now() < endsAt) {
    await sleep(POLL_INTERVAL_MS);
    check = await checkLedger(service.environment);
  }
  return check;
}

export async function checkBooks(service: Service, load: LoadGenerator): Promise<BooksReport> {
  const check = await settledLedger(service);
  const answers = load.answersByUrl.get(service.target().url) ?? 0;
  const problems = [
    ...check.problems.map((problem) => `ledger: ${JSON.stringify(problem)}`),
    ...(check.drift_ap === 0 ? [] : [`ledger: the sums drift by ${check.drift_ap} AP`]),
    ...(check.stale_holds === 0 ? [] : [`ledger: ${check.stale_holds} stale holds`]),
    ...(check.open_holds === 0 ? [] : [`ledger: ${check.open_holds} holds still open`]),
    ...(check.entries >= answers
      ? []
      : [`ledger: ${check.entries} entries for ${answers} answered requests`]),
  ];
  const table = renderTable({
    title: problems.length === 0 ? 'Clean' : 'NOT clean',
    columns: [
      'answers received',
      'ledger entries',
      'accounts',
      'open holds',
      'stale holds',
      'drift',
      'problems',
    ],
    rows: [
      [
        answers,
        check.entries,
        check.accounts,
        check.open_holds,
        check.stale_holds,
        check.drift_ap,
        check.problems.length,
      ].map((value) => value.toLocaleString('en-US')),
    ],
  });
  return { markdown: `## The books afterwards\n\n${table}`, problems };
}
