/** The closed loop of non-streamed requests, by autocannon, with its own microsecond histogram and answer checks. */
import autocannon from 'autocannon';
import { LatencyRecorder } from '../latency.ts';
import { isCompletion, requestBody } from '../wire.ts';
import { type ClosedLoopJob, ErrorTally, type LoadResult, type LoadTarget } from './job.ts';

const REQUEST_TIMEOUT_SECONDS = 30;
/** Keys each connection takes turns through; neighbouring connections start at different ones. */
const KEYS_PER_CONNECTION = 10;

function requestsOf(
  target: LoadTarget,
  body: string,
  connectionIndex: number,
): autocannon.RequestSpecification[] {
  const keyCount = Math.min(KEYS_PER_CONNECTION, target.apiKeys.length);
  return Array.from({ length: keyCount }, (_, turn) => {
    const key = target.apiKeys[(connectionIndex + turn) % target.apiKeys.length];
    return {
      method: 'POST',
      headers: { ...target.headers, 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body,
    };
  });
}

export async function runClosedLoop(job: ClosedLoopJob): Promise<LoadResult> {
  const recorder = new LatencyRecorder();
  const errors = new ErrorTally();
  const body = requestBody(job.model);
  const answersOnTime = { count: 0, lastAt: 0 };
  let connectionIndex = 0;

  const startedAt = performance.now();
  const endsAt = 'seconds' in job.until ? startedAt + job.until.seconds * 1000 : Number.POSITIVE_INFINITY;
  const instance = autocannon({
    url: job.target.url,
    connections: job.connections,
    timeout: REQUEST_TIMEOUT_SECONDS,
    ...('seconds' in job.until ? { duration: job.until.seconds } : { amount: job.until.requests }),
    requests: [{ method: 'POST', body }],
    verifyBody: isCompletion,
    setupClient: (client) => {
      client.setRequests(requestsOf(job.target, body, connectionIndex));
      connectionIndex += 1;
    },
  });
  instance.on('response', (_client, status, _bytes, responseMs) => {
    const now = performance.now();
    if (status !== 200) return errors.add(`status ${status}`);
    if (now > endsAt) return;
    recorder.recordMs(responseMs);
    answersOnTime.count += 1;
    answersOnTime.lastAt = now;
  });
  instance.on('reqMismatch', (text) => errors.add(`not a completion: ${text}`));
  instance.on('reqError', (error) => errors.add(error.message));
  const summary = await instance;

  // autocannon reconnects in silence when the server ends a connection; the requests lost that way show up here.
  const unanswered = summary.requests.sent - summary.requests.total - summary.errors;
  const lost = unanswered - ('seconds' in job.until ? job.connections : 0);
  for (let index = 0; index < lost; index += 1) errors.add('connection ended by the server before an answer');

  const seconds = ((Number.isFinite(endsAt) ? endsAt : answersOnTime.lastAt) - startedAt) / 1000;
  return {
    answers: answersOnTime.count - summary.mismatches,
    seconds,
    requestsPerSecond: answersOnTime.count / seconds,
    latency: recorder.percentiles(),
    errors: errors.count,
    errorSamples: errors.samples,
  };
}
