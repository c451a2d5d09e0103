/**
 * The open loop: request number n is due at n / rate, and its latency counts from then, not from when a busy
 * generator or a free connection let it go. So a pause of the server is seen by every request due during it
 * (no coordinated omission).
 */
import { type Dispatcher, Pool } from 'undici';
import { LatencyRecorder } from '../latency.ts';
import { isCompletion, requestBody } from '../wire.ts';
import { ErrorTally, type LoadResult, type OpenLoopJob } from './job.ts';

const MAX_CONNECTIONS = 512;
const MAX_UNANSWERED = 5000;
const REQUEST_TIMEOUT_MS = 30_000;
const TICK_MS = 1;

class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #finish: (problem: string | undefined) => void;
  readonly #parts: Buffer[] = [];
  #status = 0;

  constructor(finish: (problem: string | undefined) => void) {
    this.#finish = finish;
  }

  onRequestStart(): void {}

  onResponseStart(_controller: unknown, status: number): void {
    this.#status = status;
  }

  onResponseData(_controller: unknown, part: Buffer): void {
    this.#parts.push(part);
  }

  onResponseEnd(): void {
    const text = Buffer.concat(this.#parts).toString('utf8');
    if (this.#status !== 200) this.#finish(`status ${this.#status}: ${text}`);
    else this.#finish(isCompletion(text) ? undefined : `not a completion: ${text}`);
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#finish(error.message);
  }
}

export async function runOpenLoop(job: OpenLoopJob): Promise<LoadResult> {
  const recorder = new LatencyRecorder();
  const errors = new ErrorTally();
  const { origin, pathname } = new URL(job.target.url);
  const body = requestBody(job.model);
  const pool = new Pool(origin, {
    connections: MAX_CONNECTIONS,
    headersTimeout: REQUEST_TIMEOUT_MS,
    bodyTimeout: REQUEST_TIMEOUT_MS,
  });
  const requestCount = job.requestsPerSecond * job.seconds;
  const intervalMs = 1000 / job.requestsPerSecond;
  const startedAt = performance.now();
  let sent = 0;
  let settled = 0;

  await new Promise<void>((resolve) => {
    function settle(problem: string | undefined, dueAt: number): void {
      settled += 1;
      if (problem === undefined) recorder.recordMs(performance.now() - dueAt);
      else errors.add(problem);
      if (settled === requestCount) resolve();
    }

    function send(dueAt: number): void {
      if (sent - settled > MAX_UNANSWERED) {
        settle('too many requests unanswered', dueAt);
        return;
      }
      const key = job.target.apiKeys[sent % job.target.apiKeys.length];
      const headers = {
        ...job.target.headers,
        'content-type': 'application/json',
        authorization: `Bearer ${key}`,
      };
      const reader = new AnswerReader((problem) => settle(problem, dueAt));
      pool.dispatch({ path: pathname, method: 'POST', headers, body }, reader);
    }

    const timer = setInterval(() => {
      const dueCount = Math.min(requestCount, Math.floor((performance.now() - startedAt) / intervalMs) + 1);
      for (; sent < dueCount; sent += 1) send(startedAt + sent * intervalMs);
      if (sent === requestCount) clearInterval(timer);
    }, TICK_MS);
  });

  const seconds = (performance.now() - startedAt) / 1000;
  await pool.destroy();
  const latency = recorder.percentiles();
  return {
    answers: latency.count,
    seconds,
    requestsPerSecond: latency.count / seconds,
    latency,
    errors: errors.count,
    errorSamples: errors.samples,
  };
}
