/**
 * The closed loop of streamed requests: one undici client per connection. Times the first content chunk from the
 * sending of the request, and every later chunk from the moment the upstream wrote it (see `readStreamEvent`).
 */
import { Client, type Dispatcher } from 'undici';
import { LatencyRecorder } from '../latency.ts';
import { readStreamEvent, requestBody, STREAM_CHUNK_COUNT } from '../wire.ts';
import { ErrorTally, type LoadResult, type LoadTarget, type StreamJob } from './job.ts';

const STREAM_TIMEOUT_MS = 30_000;

interface Recorders {
  readonly whole: LatencyRecorder;
  readonly firstChunk: LatencyRecorder;
  readonly laterChunks: LatencyRecorder;
}

/** Follows one stream; `problem` stays undefined while all is well. */
class StreamReader implements Dispatcher.DispatchHandler {
  readonly #startedAt = performance.now();
  readonly #recorders: Recorders;
  readonly #finish: (problem: string | undefined) => void;
  #status = 0;
  #rest = '';
  #contentCount = 0;
  #hasUsage = false;
  #isDone = false;
  #problem: string | undefined;

  constructor(recorders: Recorders, finish: (problem: string | undefined) => void) {
    this.#recorders = recorders;
    this.#finish = finish;
  }

  onRequestStart(): void {}

  onResponseStart(_controller: unknown, status: number): void {
    this.#status = status;
  }

  onResponseData(_controller: unknown, part: Buffer): void {
    const arrivedAtNs = process.hrtime.bigint();
    const lines = (this.#rest + part.toString('utf8')).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data:')) this.#take(line.slice(5).trim(), arrivedAtNs);
  }

  #take(data: string, arrivedAtNs: bigint): void {
    const event = readStreamEvent(data);
    if (event.kind === 'invalid') this.#problem ??= `not a chunk: ${data}`;
    if (event.kind === 'usage') this.#hasUsage = true;
    if (event.kind === 'done') this.#isDone = true;
    if (event.kind !== 'content') return;
    this.#contentCount += 1;
    if (this.#contentCount === 1) this.#recorders.firstChunk.recordMs(performance.now() - this.#startedAt);
    else this.#recorders.laterChunks.recordMs(Number(arrivedAtNs - event.sentAtNs) / 1e6);
  }

  onResponseEnd(): void {
    if (this.#status !== 200) this.#problem = `status ${this.#status}: ${this.#rest}`;
    else if (this.#contentCount !== STREAM_CHUNK_COUNT)
      this.#problem ??= `${this.#contentCount} content chunks`;
    else if (!this.#hasUsage) this.#problem ??= 'no usage chunk';
    else if (!this.#isDone) this.#problem ??= 'no [DONE]';
    this.#recorders.whole.recordMs(performance.now() - this.#startedAt);
    this.#finish(this.#problem);
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#finish(error.message);
  }
}

function headersOf(target: LoadTarget, turn: number): Record<string, string> {
  const key = target.apiKeys[turn % target.apiKeys.length];
  return { ...target.headers, 'content-type': 'application/json', authorization: `Bearer ${key}` };
}

export async function runStreams(job: StreamJob): Promise<LoadResult> {
  const recorders = {
    whole: new LatencyRecorder(),
    firstChunk: new LatencyRecorder(),
    laterChunks: new LatencyRecorder(),
  };
  const errors = new ErrorTally();
  const { origin, pathname } = new URL(job.target.url);
  const body = requestBody(job.model);
  const startedAt = performance.now();
  const endsAt = startedAt + job.seconds * 1000;
  let answers = 0;
  let turn = 0;

  async function runConnection(): Promise<void> {
    const client = new Client(origin, { bodyTimeout: STREAM_TIMEOUT_MS, headersTimeout: STREAM_TIMEOUT_MS });
    try {
      while (performance.now() < endsAt) {
        const headers = headersOf(job.target, turn++);
        const problem = await new Promise<string | undefined>((resolve) => {
          client.dispatch(
            { path: pathname, method: 'POST', headers, body },
            new StreamReader(recorders, resolve),
          );
        });
        if (problem === undefined) answers += 1;
        else errors.add(problem);
      }
    } finally {
      await client.destroy();
    }
  }
  await Promise.all(Array.from({ length: job.connections }, runConnection));

  const seconds = (performance.now() - startedAt) / 1000;
  return {
    answers,
    seconds,
    requestsPerSecond: answers / seconds,
    latency: recorders.whole.percentiles(),
    firstChunk: recorders.firstChunk.percentiles(),
    laterChunks: recorders.laterChunks.percentiles(),
    errors: errors.count,
    errorSamples: errors.samples,
  };
}
