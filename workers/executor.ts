/**
 * Runs every paid task through the same steps: load, perform, settle, notify. A task says only how its area does its work;
 * what happens around it - deadlines, aborts, void on failure, who may end a request - happens here, once for all areas.
 */
import type { JobHelpers, Task } from 'graphile-worker';
import type { Config } from '../core/config.ts';
import type { Pool } from '../core/database.ts';
import { ANSWER_TOO_LARGE, ServiceError } from '../core/errors.ts';
import type { PaidJobPayload } from '../core/jobs.ts';
import type { Logger } from '../core/logger.ts';
import type { Bus } from '../core/relay/bus.ts';
import { type FinishedFrame, MAX_FRAME_BODY, processChannel } from '../core/relay/frames.ts';
import type { ActiveRuns } from './active-runs.ts';
import type { RunAssets } from './assets.ts';
import { findState, loadInput } from './data/requests.ts';
import { ProviderError } from './providers/provider.ts';
import { Run } from './run.ts';
import type { Settlement, Settler } from './settle.ts';
import type { Outcome, PaidTask } from './task.ts';

export interface ExecutorOptions {
  readonly config: Pick<Config, 'streamWindowBytes' | 'slowReaderSeconds'>;
  readonly workerId: string;
  readonly pool: Pool;
  readonly bus: Bus;
  readonly logger: Logger;
  readonly settler: Settler;
  readonly active: ActiveRuns;
  readonly assets: Pick<RunAssets, 'discardInputs'>;
}

/** A job older than this may have been cancelled or expired while it waited: look before calling a provider. */
const FRESH_MS = 1000;
/** A request whose workers were stopped, or failed it, this often is not run again. */
const MAX_RUNS = 3;
/** One whose workers died under it: it may be what they died of, and others run beside it. */
const MAX_RUNS_BY_THE_DEAD = 2;

/** Thrown to the queue engine so that it keeps the job for later. */
class RunAgain extends Error {}

export function makePaidTask<Input>(task: PaidTask<Input>, options: ExecutorOptions): Task {
  return async (rawPayload: unknown, helpers: JobHelpers) => {
    const payload = timed(rawPayload as PaidJobPayload<Input>, helpers.job.created_at);
    // a crash of the database can take back that the job was taken: it comes again while it runs
    const sameRequest = options.active.find(payload.id);
    await sameRequest?.over;
    const isFirstRun = helpers.job.attempts === 1 && sameRequest === undefined;
    if (!isFirstRun || Date.now() - payload.createdAtMs > FRESH_MS) {
      const verdict = await look(task, payload, helpers.job, options);
      if (verdict === 'ended') return;
      if (sameRequest !== undefined) throw new RunAgain('the run before it was stopped');
      if (verdict === 'void') {
        const voided: Outcome = { kind: 'failed', code: 'generation_failed' };
        await settle(payload, voided, new Date(), helpers.job.attempts, NO_EVENTS, options);
        await discardInputs(task, payload, options);
        return;
      }
    }
    const run = new Run({
      payload,
      number: helpers.job.attempts,
      workerId: options.workerId,
      bus: options.bus,
      windowBytes: options.config.streamWindowBytes,
      slowReaderMs: options.config.slowReaderSeconds * 1000,
      keepsEvents: task.storesEvents !== false,
    });
    options.active.add(run);
    try {
      const outcome = await perform(task, run, payload, options);
      if (outcome === undefined) return;
      const sent = { events: run.events, count: run.eventCount };
      await settle(payload, outcome, run.startedAt, run.number, sent, options);
      await discardInputs(task, payload, options);
    } finally {
      run.end();
      options.active.delete(run);
    }
  };
}

/** Its times by the database's clock, which every worker hears alike; the ingress that wrote the job may have another. */
function timed<Input>(payload: PaidJobPayload<Input>, createdAt: Date): PaidJobPayload<Input> {
  const createdAtMs = createdAt.getTime();
  return { ...payload, createdAtMs, deadlineAtMs: createdAtMs + payload.deadlineAtMs - payload.createdAtMs };
}

/** Whether a request that waited long, or lost a worker before, is still to be run. */
async function look<Input>(
  task: PaidTask<Input>,
  payload: PaidJobPayload<Input>,
  { attempts, last_error: lastError }: Pick<JobHelpers['job'], 'attempts' | 'last_error'>,
  { pool }: ExecutorOptions,
): Promise<'run' | 'void' | 'ended'> {
  const found = await findState(pool, payload.id);
  if (found?.isOpen !== true) return 'ended';
  // who is stopped leaves a word to the queue, who dies does not
  if (attempts > (lastError === null ? MAX_RUNS_BY_THE_DEAD : MAX_RUNS)) return 'void';
  // running: somebody began it, also where a crash of the database took back that the job was taken
  if (found.state === 'running' && !task.mayRepeat(payload)) return 'void';
  // nobody is left to read the stream, and nothing of it has been read
  if (payload.isStream && !found.isAwaited && task.isCollected !== true) return 'void';
  return 'run';
}

/** The outcome; undefined when somebody else has ended the request. */
async function perform<Input>(
  task: PaidTask<Input>,
  run: Run,
  payload: PaidJobPayload<Input>,
  options: ExecutorOptions,
): Promise<Outcome | undefined> {
  try {
    const input = payload.input ?? ((await loadInput(options.pool, run.id)) as Input | undefined);
    if (input === undefined) return undefined; // the input goes with the hold
    return await task.perform(run, input);
  } catch (error) {
    switch (run.abortCause) {
      case 'lost':
        return undefined;
      case 'stopping':
        throw new RunAgain('the worker is stopping', { cause: error });
      case 'client_gone':
        return { kind: 'cancelled', costAp: 0 };
      case 'deadline':
        return { kind: 'failed', code: 'generation_failed' };
      default:
        return failureOf(error, run, options.logger);
    }
  }
}

function failureOf(error: unknown, run: Run, logger: Logger): Outcome {
  if (error instanceof ServiceError) return { kind: 'failed', code: error.code, details: error.details };
  if (error instanceof ProviderError) {
    logger.warn(
      {
        requestId: run.id,
        modelId: run.payload.modelId,
        kind: error.kind,
        status: error.status,
        reason: error.message,
      },
      'a provider failed',
    );
    if (error.kind === 'moderated') return { kind: 'failed', code: 'content_moderated' };
    if (error.kind === 'rejected') {
      return {
        kind: 'failed',
        code: 'invalid_parameter',
        details: {
          param: error.param ?? 'body',
          ...(error.publicMessage === undefined ? {} : { provider_message: error.publicMessage }),
        },
      };
    }
    return {
      kind: 'failed',
      code: 'generation_failed',
      ...(error.isOurLimit ? { details: { reason: ANSWER_TOO_LARGE } } : {}),
    };
  }
  logger.error({ err: error, requestId: run.id, modelId: run.payload.modelId }, 'a task failed unexpectedly');
  return { kind: 'failed', code: 'internal_error' };
}

/** What a run has sent; the events themselves only where they are stored. */
interface Sent {
  readonly events: readonly string[];
  readonly count: number;
}

const NO_EVENTS: Sent = { events: [], count: 0 };

/** Puts the outcome on the books, then tells whoever waits: nobody is told of anything that is not committed. */
async function settle(
  payload: PaidJobPayload,
  outcome: Outcome,
  startedAt: Date,
  run: number,
  sent: Sent,
  options: ExecutorOptions,
): Promise<void> {
  const lastEvents = outcome.kind === 'succeeded' ? (outcome.lastEvents ?? []) : [];
  const settled = await options.settler.add({
    requestId: payload.id,
    accountId: payload.accountId,
    state: outcome.kind,
    costAp: outcome.kind === 'failed' ? 0 : outcome.costAp,
    usage: outcome.kind === 'failed' ? undefined : outcome.usage,
    provider: outcome.provider,
    errorCode: outcome.kind === 'failed' ? outcome.code : undefined,
    errorDetails: outcome.kind === 'failed' ? outcome.details : undefined,
    startedAt,
    result: resultOf(payload, outcome, [...sent.events, ...lastEvents]),
    assets: outcome.kind === 'failed' ? undefined : outcome.assets,
    cacheKey: outcome.kind === 'succeeded' ? outcome.cacheKey : undefined,
    inputIsInline: payload.input !== null,
  });
  if (payload.ingressId === null) return;
  const frame: FinishedFrame = {
    kind: 'finished',
    id: payload.id,
    workerId: options.workerId,
    run,
    state: settled.state,
    costAp: settled.costAp,
    eventCount: sent.count + lastEvents.length,
    ...(settled.isSettled && lastEvents.length > 0 ? { events: lastEvents } : {}),
    ...(settled.isSettled && outcome.kind === 'succeeded' && isSmall(outcome.body)
      ? { body: outcome.body }
      : {}),
    ...(outcome.kind === 'failed' ? { errorCode: outcome.code } : {}),
    ...(outcome.kind === 'failed' && outcome.details !== undefined ? { errorDetails: outcome.details } : {}),
  };
  options.bus.publish(processChannel(payload.ingressId), frame);
}

/** The request has ended: nobody reads again what its caller sent. */
async function discardInputs<Input>(
  task: PaidTask<Input>,
  payload: PaidJobPayload<Input>,
  { assets }: ExecutorOptions,
): Promise<void> {
  if (task.hasInputFiles === true) await assets.discardInputs(payload.id);
}

function isSmall(body: string | undefined): body is string {
  return body !== undefined && body.length <= MAX_FRAME_BODY;
}

function resultOf(
  payload: PaidJobPayload,
  outcome: Outcome,
  events: readonly string[],
): Settlement['result'] {
  if (outcome.kind !== 'succeeded') return undefined;
  if (outcome.body !== undefined) return { kind: 'json', body: outcome.body };
  return payload.isStream ? { kind: 'events', body: events.join('\n') } : undefined;
}
