/**
 * Callers for tests that end processes: every kind of request there is, from many accounts and one hot one, each remembered
 * with what its caller saw. What the books must say of each is in `chaos-books.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { MockUpstream } from './mock-upstream.ts';
import type { MockBehaviour } from './mock-upstream-wire.ts';

export const AP_IN_PER_1K = 25;
export const AP_OUT_PER_1K = 1000;

/** Every upstream answer is another, so that two of them mixed would show; `c17:0 c17:1 …` is the 17th answer's text. */
const PIECES_WHOLE = 3;
export const MODELS = {
  fast: { pieces: PIECES_WHOLE, latencyMs: 20, spacingMs: 0 },
  slow: { pieces: PIECES_WHOLE, latencyMs: 3000, spacingMs: 0 },
  stream: { pieces: 15, latencyMs: 30, spacingMs: 40 },
  long: { pieces: 40, latencyMs: 800, spacingMs: 100 },
} as const;
type Model = keyof typeof MODELS;
export const MODEL_IDS = Object.keys(MODELS) as Model[];

export type Kind = 'whole' | 'stream' | 'leave' | 'leave-whole' | 'retry-whole' | 'retry-stream' | 'async';

export interface Caller {
  readonly accountId: string;
  readonly secret: string;
}

/** One HTTP exchange as its caller saw it. */
export interface Attempt {
  readonly n: number;
  readonly kind: Kind;
  readonly model: Model;
  readonly accountId: string;
  readonly secret: string;
  readonly web: string;
  readonly idempotencyKey: string | undefined;
  readonly startedAt: number;
  endedAt: number;
  /** x-svc-request-id; undefined where the connection was lost before the headers. */
  requestId: string | undefined;
  status: number | undefined;
  /**
   * - `complete`: the whole body, or a stream to its [DONE]
   * - `error`: an error status, or an error event in a stream
   * - `lost`: the connection broke, or was refused
   * - `left`: the caller went away
   * - `accepted`: 202, not collected (yet)
   */
  outcome: 'complete' | 'error' | 'lost' | 'left' | 'accepted' | undefined;
  isReplay: boolean;
  toldCost: number | undefined;
  text: string;
  usage: { prompt_tokens: number; completion_tokens: number } | undefined;
  /** The id of the completion: the request that was charged, also where it is replayed. */
  completionId: string | undefined;
  note: string;
}

/** Mulberry32: small, and the same everywhere. */
export function makeRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Teaches the mock every model; each answer is numbered, and a whole one's usage tells its number. */
export function programUpstream(upstream: MockUpstream): void {
  let answers = 0;
  for (const [model, { pieces, latencyMs, spacingMs }] of Object.entries(MODELS)) {
    const behaviour: MockBehaviour = {
      latencyMs,
      chunkSpacingMs: spacingMs,
      get chunks() {
        answers += 1;
        const number = answers;
        return Array.from({ length: pieces }, (_, index) => `c${number}:${index} `);
      },
      get usage() {
        const completion = spacingMs > 0 ? pieces : wholeTokens(answers);
        return { prompt_tokens: 9, completion_tokens: completion, total_tokens: 9 + completion };
      },
    };
    upstream.program(model, behaviour);
  }
}

/** Whole answers are made in one go, so the usage can tell which answer it belongs to. */
export function wholeTokens(answer: number): number {
  return 1 + (answer % 200);
}

export interface LoadOptions {
  readonly origins: readonly string[];
  readonly callers: readonly Caller[];
  /** Gets a third of the requests. */
  readonly hot: Caller;
  readonly concurrency: number;
  readonly random: () => number;
  /** More than one where a caller is to ask again. */
  readonly patienceMs: number;
}

const MAX_TOKENS = 256;
const WEIGHTS: readonly (readonly [Kind, Model, number])[] = [
  ['whole', 'fast', 26],
  ['whole', 'slow', 8],
  ['stream', 'stream', 18],
  ['stream', 'long', 10],
  ['leave', 'stream', 4],
  ['leave', 'long', 4],
  ['leave-whole', 'slow', 3],
  ['retry-whole', 'fast', 7],
  ['retry-whole', 'slow', 4],
  ['retry-stream', 'stream', 5],
  ['retry-stream', 'long', 3],
  ['async', 'fast', 5],
  ['async', 'slow', 3],
];

export class Load {
  readonly attempts: Attempt[] = [];
  readonly #options: LoadOptions;
  #isRunning = false;
  #loops: Promise<void>[] = [];

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  start(): void {
    this.#isRunning = true;
    this.#loops = Array.from({ length: this.#options.concurrency }, () => this.#loop());
  }

  /** Resolves when every caller has its answer. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#loops);
  }

  /** One plain request to one web, remembered like all others. */
  async probe(origin: string, caller: Caller): Promise<Attempt> {
    return await this.#send('whole', 'fast', caller, origin, undefined);
  }

  async #loop(): Promise<void> {
    const { random, callers, hot } = this.#options;
    while (this.#isRunning) {
      const [kind, model] = this.#draw();
      const caller = random() < 0.33 ? hot : (callers[Math.floor(random() * callers.length)] ?? hot);
      if (kind === 'retry-whole' || kind === 'retry-stream') await this.#retry(kind, model, caller);
      else if (kind === 'async') await this.#collect(model, caller);
      else {
        const { outcome } = await this.#send(kind, model, caller, this.#anyOrigin(), undefined);
        if (outcome === 'lost' || outcome === 'error') await sleep(250);
      }
      await sleep(random() * 100);
    }
  }

  #draw(): readonly [Kind, Model] {
    const sum = WEIGHTS.reduce((total, [, , weight]) => total + weight, 0);
    let rest = this.#options.random() * sum;
    for (const [kind, model, weight] of WEIGHTS) {
      rest -= weight;
      if (rest < 0) return [kind, model];
    }
    return ['whole', 'fast'];
  }

  #anyOrigin(): string {
    const { origins, random } = this.#options;
    return origins[Math.floor(random() * origins.length)] ?? '';
  }

  /** The same key and body until there is an answer, on whatever web. */
  async #retry(kind: Kind, model: Model, caller: Caller): Promise<void> {
    const key = `key-${Math.floor(this.#options.random() * 1e12).toString(36)}-${this.attempts.length}`;
    const deadline = Date.now() + this.#options.patienceMs;
    while (Date.now() < deadline) {
      const { outcome } = await this.#send(kind, model, caller, this.#anyOrigin(), key);
      if (outcome === 'complete') return;
      await sleep(500);
    }
  }

  /** respond-async, then polls until it is finished. */
  async #collect(model: Model, caller: Caller): Promise<void> {
    const attempt = await this.#send('async', model, caller, this.#anyOrigin(), undefined);
    if (attempt.outcome !== 'accepted' || attempt.requestId === undefined) return;
    const deadline = Date.now() + this.#options.patienceMs;
    while (Date.now() < deadline) {
      await sleep(300);
      const found = await fetchRequest(this.#anyOrigin(), caller.secret, attempt.requestId);
      if (found === undefined || !isFinal(found.status)) continue;
      attempt.endedAt = Date.now();
      if (found.status === 'succeeded') takeCompletion(attempt, found.result ?? {}, found.ap_cost);
      attempt.outcome = found.status === 'succeeded' ? 'complete' : 'error';
      attempt.note = `collected: ${found.status}`;
      return;
    }
    attempt.note = 'never finished';
  }

  async #send(
    kind: Kind,
    model: Model,
    caller: Caller,
    web: string,
    idempotencyKey: string | undefined,
  ): Promise<Attempt> {
    const attempt: Attempt = {
      n: this.attempts.length,
      kind,
      model,
      accountId: caller.accountId,
      secret: caller.secret,
      web,
      idempotencyKey,
      startedAt: Date.now(),
      endedAt: 0,
      requestId: undefined,
      status: undefined,
      outcome: undefined,
      isReplay: false,
      toldCost: undefined,
      text: '',
      usage: undefined,
      completionId: undefined,
      note: '',
    };
    this.attempts.push(attempt);
    const isStream = kind === 'stream' || kind === 'retry-stream' || kind === 'leave';
    const leaving = new AbortController();
    if (kind === 'leave-whole') setTimeout(() => leaving.abort(), this.#options.random() * 3000);
    try {
      const response = await fetch(`${web}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${caller.secret}`,
          'content-type': 'application/json',
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          ...(kind === 'async' ? { prefer: 'respond-async' } : {}),
        },
        body: JSON.stringify({
          model,
          messages: [{ role: 'user', content: 'Hello?' }],
          max_tokens: MAX_TOKENS,
          ...(isStream ? { stream: true, stream_options: { include_usage: true } } : {}),
        }),
        signal: AbortSignal.any([leaving.signal, AbortSignal.timeout(this.#options.patienceMs)]),
      });
      attempt.status = response.status;
      attempt.requestId = response.headers.get('x-svc-request-id') ?? undefined;
      attempt.isReplay = response.headers.get('idempotency-replayed') === 'true';
      if (response.status === 202) {
        await response.arrayBuffer();
        attempt.outcome = 'accepted';
      } else if (response.status !== 200) {
        attempt.note = await response.text();
        attempt.outcome = 'error';
      } else if (isStream) {
        const leaveAfter = kind === 'leave' ? Math.floor(this.#options.random() * 10) : undefined;
        await readStream(attempt, response, leaveAfter, leaving);
      } else {
        const told = Number(response.headers.get('x-svc-ap-cost'));
        takeCompletion(attempt, (await response.json()) as Completion, told);
        attempt.outcome = 'complete';
      }
    } catch (error) {
      attempt.outcome = leaving.signal.aborted ? 'left' : 'lost';
      attempt.note = `${String(error)} ${String((error as Error).cause ?? '')}`;
    }
    attempt.endedAt = Date.now();
    return attempt;
  }
}

interface Completion {
  readonly id?: string;
  readonly choices?: readonly { readonly message?: { readonly content?: string } }[];
  readonly usage?: Attempt['usage'];
}

function takeCompletion(attempt: Attempt, completion: Completion, toldCost: number): void {
  attempt.completionId = completion.id?.replace(/^chatcmpl-/, '');
  attempt.text = completion.choices?.[0]?.message?.content ?? '';
  attempt.usage = completion.usage;
  attempt.toldCost = toldCost;
}

interface StreamEvent {
  readonly id?: string;
  readonly error?: unknown;
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[];
  readonly usage?: Attempt['usage'] | null;
  readonly ap_cost?: number;
}

async function readStream(
  attempt: Attempt,
  response: Response,
  leaveAfter: number | undefined,
  leaving: AbortController,
): Promise<void> {
  let rest = '';
  let events = 0;
  const decoder = new TextDecoder();
  for await (const part of response.body ?? []) {
    rest += decoder.decode(part as Uint8Array, { stream: true });
    for (;;) {
      const end = rest.indexOf('\n\n');
      if (end === -1) break;
      const line = rest.slice(0, end);
      rest = rest.slice(end + 2);
      if (!line.startsWith('data: ')) continue;
      const data = line.slice('data: '.length);
      if (data === '[DONE]') {
        attempt.outcome = 'complete';
        continue;
      }
      const event = JSON.parse(data) as StreamEvent;
      if (event.error !== undefined || event.choices === undefined) {
        attempt.outcome = 'error';
        attempt.note = data;
        continue;
      }
      attempt.completionId = event.id?.replace(/^chatcmpl-/, '');
      attempt.text += event.choices[0]?.delta?.content ?? '';
      if (event.usage != null) attempt.usage = event.usage;
      if (event.ap_cost !== undefined) attempt.toldCost = event.ap_cost;
      events += 1;
      if (events === leaveAfter) {
        leaving.abort();
        throw new Error('left');
      }
    }
  }
  if (attempt.outcome === undefined) {
    attempt.outcome = 'lost';
    attempt.note = 'the stream ended without [DONE]';
  }
}

export interface RequestView {
  readonly status: string;
  readonly ap_cost: number;
  readonly result?: Completion | null;
}

export function isFinal(state: string): boolean {
  return state !== 'queued' && state !== 'running';
}

/** GET /v1/requests/{id}; undefined while nobody answers. */
export async function fetchRequest(
  origin: string,
  secret: string,
  id: string,
): Promise<RequestView | undefined> {
  try {
    const response = await fetch(`${origin}/v1/requests/${id}`, {
      headers: { authorization: `Bearer ${secret}` },
      signal: AbortSignal.timeout(10_000),
    });
    const body = (await response.json()) as RequestView;
    return response.ok ? body : undefined;
  } catch {
    return undefined;
  }
}
