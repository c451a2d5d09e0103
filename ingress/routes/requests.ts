/**
 * `/v1/requests`: the caller's requests, their state, their results while they are kept, and cancelling them.
 */
import { assembleCompletion } from '../../core/chat-assembly.ts';
import type { Config } from '../../core/config.ts';
import { ServiceError } from '../../core/errors.ts';
import { IMAGE_TASK, type ImageResult, type ImageStreamEvent, resultOfEvents } from '../../core/images.ts';
import {
  SPEECH_TASK,
  type SpeechResult,
  TRANSCRIPTION_TASK,
  type TranscriptionResult,
} from '../../core/speech.ts';
import { type Context, callerOf, type Handler } from '../context.ts';
import {
  cancelQueuedRequest,
  cancelRequest,
  findRequest,
  listRequests,
  type RequestRow,
  type RequestWithResult,
  type StoredResult,
} from '../data/requests.ts';
import { date, idOf, oneOf, uuid, wholeNumber } from '../parameters.ts';
import { publicUrl } from '../public-url.ts';
import { errorView, whenLocked } from '../results.ts';
import type { Services } from '../services.ts';
import { speechView } from './audio/presentation.ts';
import { transcriptView } from './audio/transcript-view.ts';
import { resultView } from './images/view.ts';

const STATES = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired'];
const AREAS = ['llm', 'tts', 'images', 'x', 'cert'];
const DEFAULT_PAGE = 20;
const MAX_PAGE = 100;
/** How long a cancelled stream is waited for to be settled by its worker, which alone knows what was produced. */
const CANCEL_PATIENCE_MS = 10_000;
/** Workers say within 400 ms that a request is running: one that is still queued after this is not, and hears of its end. */
const NOT_BEGUN_MS = 1000;
/** Between two looks at a cancelled stream: from the shortest, ever longer, to the longest. */
const CANCEL_POLL_MS = 25;
const MAX_CANCEL_POLL_MS = 500;

/** GET /v1/requests/{id} */
export function getRequest({ config, pool }: Services): Handler {
  return async (ctx) => {
    const request = await findRequest(pool, idOf(ctx), callerOf(ctx).accountId);
    if (request === undefined) throw new ServiceError('not_found');
    if (request.finishedAt === null) ctx.set('Retry-After', '2');
    ctx.set('Cache-Control', 'private, no-store');
    const view = requestView(ctx, config, request);
    if (isShownAsStored(request)) {
      ctx.type = 'application/json';
      ctx.body = withStored(view, request.result.body);
    } else {
      ctx.body = { ...view, ...outcomeView(ctx, config, request) };
    }
  };
}

/** GET /v1/requests */
export function getRequests({ config, pool }: Services): Handler {
  return async (ctx) => {
    const limit = wholeNumber(ctx, 'limit', DEFAULT_PAGE, 1, MAX_PAGE);
    const rows = await listRequests(pool, {
      accountId: callerOf(ctx).accountId,
      before: uuid(ctx, 'cursor'),
      state: oneOf(ctx, 'state', STATES),
      area: oneOf(ctx, 'area', AREAS),
      from: date(ctx, 'from'),
      to: date(ctx, 'to'),
      limit: limit + 1,
    });
    const page = rows.slice(0, limit);
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = {
      object: 'list',
      data: page.map((request) => requestView(ctx, config, request)),
      has_more: rows.length > limit,
      next_cursor: rows.length > limit ? page.at(-1)?.id : null,
    };
  };
}

/**
 * POST /v1/requests/{id}/cancel: returns everything held; of a stream that is running, what was produced is charged. A stream
 * whose worker has not settled it in time is answered as it stands; its worker, or the expiry of its hold, settles it later.
 * 503 where the balance stays locked.
 */
export function postCancel({ config, pool, balancesPool, relay }: Services): Handler {
  return async (ctx) => {
    const id = idOf(ctx);
    const { accountId } = callerOf(ctx);
    let request = await findRequest(pool, id, accountId);
    if (request === undefined) throw new ServiceError('not_found');
    if (request.finishedAt === null) {
      try {
        if (request.isStream) await stopStream({ pool, balancesPool, relay }, id, accountId);
        else {
          relay.abort(id);
          await cancelRequest(balancesPool, id, accountId);
        }
      } catch (error) {
        throw whenLocked(error);
      }
      request = (await findRequest(pool, id, accountId)) ?? request;
    }
    ctx.body = requestView(ctx, config, request);
  };
}

async function stopStream(
  { pool, balancesPool, relay }: Pick<Services, 'pool' | 'balancesPool' | 'relay'>,
  id: string,
  accountId: string,
): Promise<void> {
  const startedAt = Date.now();
  let pauseMs = CANCEL_POLL_MS;
  while (Date.now() - startedAt < CANCEL_PATIENCE_MS) {
    relay.abort(id); // again each time: it may have been lost
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(pauseMs * 1.5, MAX_CANCEL_POLL_MS);
    const request = await findRequest(pool, id, accountId);
    if (request?.finishedAt !== null) return;
    if (request.state === 'queued' && Date.now() - startedAt >= NOT_BEGUN_MS)
      await cancelQueuedRequest(balancesPool, id, accountId);
  }
}

function requestView(ctx: Context, config: Config, request: RequestRow): Record<string, unknown> {
  return {
    id: request.id,
    object: 'request',
    status: request.state,
    area: request.area,
    model: request.modelId,
    stream: request.isStream,
    held_ap: request.finishedAt === null ? request.holdAp : 0,
    ap_cost: request.costAp,
    usage: request.usage,
    error_code: request.errorCode,
    created_at: request.createdAt.toISOString(),
    started_at: request.startedAt?.toISOString() ?? null,
    finished_at: request.finishedAt?.toISOString() ?? null,
    status_url: publicUrl(ctx, config, `/v1/requests/${request.id}`),
  };
}

function outcomeView(ctx: Context, config: Config, request: RequestWithResult): Record<string, unknown> {
  if (request.finishedAt === null) return {};
  if (request.state !== 'succeeded') return errorView(request, ctx.state.language);
  if (request.result === null) return { result: null, result_expired: true };
  const view = RESULT_VIEWS[request.task] ?? streamedChatView;
  return { result: view(ctx, config, request, request.result) };
}

type ResultView = (ctx: Context, config: Config, request: RequestWithResult, result: StoredResult) => unknown;

function isShownAsStored(
  request: RequestWithResult,
): request is RequestWithResult & { readonly result: StoredResult } {
  return (
    request.state === 'succeeded' &&
    request.result?.kind === 'json' &&
    RESULT_VIEWS[request.task] === undefined
  );
}

/**
 * The stored text as it is: parsed, an answer of many megabytes would weigh ten times as much, for each of its readers. Bytes, since
 * they lie outside the heap.
 */
function withStored(view: Record<string, unknown>, stored: string): Buffer {
  const before = `${JSON.stringify(view).slice(0, -1)},"result":`;
  return Buffer.concat([before, stored, '}'].map((text) => Buffer.from(text)));
}

const streamedChatView: ResultView = (_ctx, _config, _request, { body }) =>
  assembleCompletion(body.split('\n').map((event) => JSON.parse(event) as never));

/** Results that are stored in another shape than their callers get. Files are named by their addresses. */
const RESULT_VIEWS: Readonly<Record<string, ResultView>> = {
  [IMAGE_TASK]: (ctx, config, { id, modelId }, { kind, body }) => {
    const result =
      kind === 'json'
        ? (JSON.parse(body) as ImageResult)
        : resultOfEvents(
            { id, model: modelId },
            body.split('\n').map((event) => JSON.parse(event) as ImageStreamEvent),
          );
    return result === undefined ? null : resultView(ctx, config, result);
  },
  [SPEECH_TASK]: (ctx, config, { id }, { body }) =>
    speechView(ctx, config, id, JSON.parse(body) as SpeechResult),
  [TRANSCRIPTION_TASK]: (_ctx, _config, _request, { body }) =>
    transcriptView(JSON.parse(body) as TranscriptionResult),
};
