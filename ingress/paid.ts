/**
 * What every paid route does after its own checks: submit, then relay the answer in the form the caller asked for: waiting,
 * as a stream, or to be collected. A route supplies what is particular to its area and how a result is shown.
 */
import { createHash } from 'node:crypto';
import { ServiceError } from '../core/errors.ts';
import type { Price, Quote } from '../core/pricing.ts';
import type { FinishedFrame } from '../core/relay/frames.ts';
import { type Context, callerOf } from './context.ts';
import { cancelRequest, findRequest } from './data/requests.ts';
import { foreseeSubmission, type Submission } from './data/submissions.ts';
import { type FileShape, streamFile } from './file-stream.ts';
import { isOldEnoughForGrant, mustSpendPurchased } from './middleware/authenticate.ts';
import type { Pending } from './pending.ts';
import { publicUrl } from './public-url.ts';
import { errorOf } from './results.ts';
import type { Services } from './services.ts';
import { replayEvents, type StreamShape, streamEvents } from './stream.ts';
import { type Submitted, toResult } from './submit.ts';

export interface PaidRequest {
  readonly area: string;
  readonly task: string;
  readonly modelId: string;
  readonly price: Price;
  readonly quote: Quote;
  readonly timeoutSeconds: number;
  readonly isStream: boolean;
  /** The job's data; let go once it is submitted, as the caller may wait long. */
  input: unknown;
  /** The body as sent, or a digest of it: what tells two requests under one Idempotency-Key apart. Let go likewise. */
  rawBody: Buffer;
  /** When the caller leaves before a non-streamed answer: stop (chat), or finish for collection by id. */
  readonly stopWhenCallerLeaves: boolean;
  /** How the area shows what is stored; none: as it is stored. */
  readonly presentation?: Presentation;
}

/** What is stored of an area's results, as its callers are to see it. */
export interface Presentation {
  /** The headers of every answer that has to do with this request. */
  announce(ctx: Context, id: string): void;
  /** Where the request is collected. */
  statusPath(id: string): string;
  /** Throws ServiceError where what a stored result names is no longer there. */
  requireKept(ctx: Context, id: string): Promise<void>;
  /** Answers with a stored JSON result. */
  answer(ctx: Context, id: string, stored: string): Promise<void>;
  /** Of areas that stream events. */
  stream?(ctx: Context, id: string): StreamShape;
  /** Of areas whose streams are a file. */
  file?(ctx: Context, id: string): FileShape;
}

/** Whether the request was accepted: what the route stored for its job is the job's from then on. */
export type PaidOutcome = 'accepted' | 'replayed';

/** `onSubmitted` is told as soon as that is known; where this throws before, nothing was accepted. */
export async function runPaid(
  ctx: Context,
  services: Services,
  request: PaidRequest,
  onSubmitted?: (outcome: PaidOutcome) => void,
): Promise<void> {
  const { requestId } = ctx.state;
  // a file can be collected as well as it can be streamed
  const isAsync = (!request.isStream || request.presentation?.file !== undefined) && prefersAsync(ctx);
  const pending = services.relay.expect(requestId);
  try {
    const submitted = await submitAndLetGo(ctx, services, request, isAsync);
    if (submitted.outcome === 'replay') {
      onSubmitted?.('replayed');
      await replay(ctx, services, submitted.requestId, request);
      return;
    }
    onSubmitted?.('accepted');
    ctx.set('x-svc-model', request.modelId);
    request.presentation?.announce(ctx, requestId);
    if (isAsync) answerAccepted(ctx, services, pending, request);
    else if (request.isStream) await answerWithStream(ctx, services, pending, request);
    else await answerWhenFinished(ctx, services, pending, request);
  } finally {
    pending.forget();
  }
}

/**
 * Throws what submitting would refuse the request with as things stand, so that nothing is done for it in vain; submitting has the
 * last word.
 */
export async function refuseEarly(ctx: Context, services: Services, request: PaidRequest): Promise<void> {
  services.load.refuseWhenTooDeep();
  const submission = submissionOf(ctx, services, request, null);
  toResult(await foreseeSubmission(services.pool, services.config.initialGrantAp, submission), submission);
}

function submitAndLetGo(
  ctx: Context,
  services: Services,
  request: PaidRequest,
  isAsync: boolean,
): Promise<Submitted> {
  const asked = { ...request, isStream: request.isStream && !isAsync };
  const submission = submissionOf(ctx, services, asked, isAsync ? null : services.relay.ingressId);
  services.load.refuseWhenTooDeep();
  request.input = undefined;
  request.rawBody = NO_BYTES;
  return services.submit(submission);
}

const NO_BYTES = Buffer.alloc(0);

async function answerWithStream(
  ctx: Context,
  services: Services,
  pending: Pending,
  request: PaidRequest,
): Promise<void> {
  const { presentation } = request;
  const file = presentation?.file?.(ctx, pending.id);
  if (file === undefined) {
    await streamEvents(ctx, services.config, pending, presentation?.stream?.(ctx, pending.id));
  } else if ((await streamFile(ctx, services, pending, file)) === 'late') {
    answerAccepted(ctx, services, pending, request);
  }
}

/** What is submitted for this caller. Throws `invalid_parameter` for an Idempotency-Key that is none. */
export function submissionOf(
  ctx: Context,
  services: Pick<Services, 'config' | 'now'>,
  request: Omit<PaidRequest, 'stopWhenCallerLeaves' | 'presentation'>,
  ingressId: string | null,
): Submission {
  const caller = callerOf(ctx);
  return {
    id: ctx.state.requestId,
    accountId: caller.accountId,
    keyId: caller.keyId,
    area: request.area,
    task: request.task,
    modelId: request.modelId,
    priceId: request.price.id,
    isStream: request.isStream,
    ingressId,
    quote: request.quote,
    timeoutSeconds: request.timeoutSeconds,
    idempotency: idempotencyOf(ctx, request.rawBody),
    caps: {
      perRequestAp: caller.capPerRequestAp,
      dailyAp: caller.capDailyAp,
      monthlyAp: caller.capMonthlyAp,
      grantDailyAp: services.config.grantDailyCapAp === 0 ? null : services.config.grantDailyCapAp,
    },
    isFunded: caller.hasPurchased,
    isGrantAllowed: isOldEnoughForGrant(caller, services),
    needsPurchased: mustSpendPurchased(caller, services),
    input: request.input,
  };
}

async function answerWhenFinished(
  ctx: Context,
  services: Services,
  pending: Pending,
  request: PaidRequest,
): Promise<void> {
  const onClose = (): void => {
    if (ctx.res.writableFinished || !request.stopWhenCallerLeaves) return;
    pending.abort();
    // without the relay only the books can tell the worker
    if (!services.relay.isConnected) void cancelUnheard(services, pending.id, callerOf(ctx).accountId);
  };
  ctx.res.once('close', onClose);
  if (ctx.res.destroyed) onClose(); // gone while the request was being submitted
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), services.config.edgeWaitSeconds * 1000);
  });
  const finished = await Promise.race([pending.finished, timeout]);
  clearTimeout(timer);
  ctx.res.off('close', onClose);
  if (finished === undefined) answerAccepted(ctx, services, pending, request);
  else await answerFinished(ctx, finished, request);
}

async function cancelUnheard(
  { balancesPool, logger }: Services,
  id: string,
  accountId: string,
): Promise<void> {
  try {
    await cancelRequest(balancesPool, id, accountId);
  } catch (error) {
    logger.warn({ err: error, requestId: id }, 'a request whose caller left could not be cancelled');
  }
}

/** 202: the job goes on, the caller collects. */
function answerAccepted(
  ctx: Context,
  { config }: Services,
  { id, hasBegun }: Pending,
  { presentation }: Pick<PaidRequest, 'presentation'>,
): void {
  const statusUrl = presentation?.statusPath(id) ?? `/v1/requests/${id}`;
  ctx.status = 202;
  ctx.set('Location', statusUrl);
  ctx.set('Retry-After', '2');
  ctx.body = { id, status: hasBegun ? 'running' : 'queued', status_url: publicUrl(ctx, config, statusUrl) };
}

async function answerFinished(
  ctx: Context,
  finished: FinishedFrame,
  { presentation }: PaidRequest,
): Promise<void> {
  if (finished.state !== 'succeeded' || finished.body === undefined) throw errorOf(finished);
  ctx.set('x-svc-ap-cost', String(finished.costAp));
  await answerStored(ctx, finished.id, finished.body, presentation);
}

async function answerStored(
  ctx: Context,
  id: string,
  stored: string,
  presentation: Presentation | undefined,
): Promise<void> {
  if (presentation !== undefined) {
    await presentation.answer(ctx, id, stored);
    return;
  }
  ctx.type = 'application/json';
  ctx.body = stored;
}

/** The first answer again, free. */
async function replay(
  ctx: Context,
  services: Services,
  id: string,
  { isStream, presentation }: PaidRequest,
): Promise<void> {
  const caller = callerOf(ctx);
  const request = await findRequest(services.pool, id, caller.accountId);
  if (request?.result == null) throw new ServiceError('expired');
  await presentation?.requireKept(ctx, id);
  ctx.set('Idempotency-Replayed', 'true');
  ctx.set('x-svc-model', request.modelId);
  presentation?.announce(ctx, id);
  if (request.result.kind === 'json') {
    ctx.set('x-svc-ap-cost', '0');
    await answerStored(ctx, id, request.result.body, presentation);
    return;
  }
  // the key was used for an answer from the cache, which was made as a stream and can no longer be read
  if (!isStream) throw new ServiceError('expired');
  const events = request.result.body.split('\n');
  await replayEvents(ctx, services.config, events, presentation?.stream?.(ctx, id));
}

const IDEMPOTENCY_KEY = /^[\x21-\x7e][\x20-\x7e]{0,254}$/;

/** The request's Idempotency-Key with what it is for. Throws `invalid_parameter` for one that is none. */
export function idempotencyOf(
  ctx: Context,
  rawBody: Buffer,
): { key: string; bodySha256: string } | undefined {
  const key = ctx.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || !IDEMPOTENCY_KEY.test(key)) {
    throw new ServiceError('invalid_parameter', { param: 'Idempotency-Key' });
  }
  // the path belongs to the request: one key on two endpoints is two different requests
  return { key, bodySha256: createHash('sha256').update(`${ctx.path}\n`).update(rawBody).digest('hex') };
}

/** RFC 7240: `Prefer: respond-async`. */
function prefersAsync(ctx: Context): boolean {
  const header = ctx.headers.prefer;
  const values = Array.isArray(header) ? header.join(',') : (header ?? '');
  return values.split(',').some((value) => /^\s*respond-async\s*(?:;|$)/i.test(value));
}
