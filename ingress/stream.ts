/**
 * Server-sent events to the caller, at the caller's pace: what it has not taken is not acknowledged, and the worker stops
 * reading from the provider when too much is unacknowledged. A caller that leaves ends the request.
 */
import type { ServerResponse } from 'node:http';
import type { Config } from '../core/config.ts';
import { errorBody } from '../core/errors.ts';
import type { FinishedFrame } from '../core/relay/frames.ts';
import type { Context } from './context.ts';
import type { Pending } from './relay.ts';
import { errorOf } from './results.ts';

/** Bytes taken between two acknowledgements, and never more than a quarter of what may be in flight. */
const ACKNOWLEDGE_BYTES = 64 * 1024;

type StreamConfig = Pick<Config, 'streamCommentSeconds' | 'streamWindowBytes'>;

/**
 * Relays a stream to its end. Nothing is sent before the first event, so a request that fails at once is answered with its
 * proper status; after that an error is the stream's last event.
 */
export async function streamEvents(ctx: Context, config: StreamConfig, pending: Pending): Promise<void> {
  const { res } = ctx;
  let isGone = false;
  let wake = (): void => {};
  const leave = (): void => {
    if (res.writableFinished || isGone) return;
    isGone = true;
    pending.abort();
    wake();
  };
  res.once('close', leave);
  if (res.destroyed) leave(); // gone while the request was being submitted
  pending.onEvents = () => wake();

  let finished: FinishedFrame | undefined;
  void pending.finished.then((frame) => {
    finished = frame;
    wake(); // also when it was finished before anybody asked
  });

  let isOpen = false;
  let sentBytes = 0;
  let acknowledgedBytes = 0;
  const acknowledgeBytes = Math.min(ACKNOWLEDGE_BYTES, config.streamWindowBytes / 4);
  const commentMs = config.streamCommentSeconds * 1000;
  const idle = setInterval(() => {
    if (!isOpen) {
      open(ctx);
      isOpen = true;
    }
    res.write(': waiting\n\n');
  }, commentMs);
  try {
    for (;;) {
      const events = pending.takeEvents();
      if (events.length > 0) {
        idle.refresh();
        if (!isOpen) open(ctx);
        isOpen = true;
        const text = eventText(events);
        sentBytes += Buffer.byteLength(text);
        if (!res.write(text)) await drained(res);
        if (sentBytes - acknowledgedBytes >= acknowledgeBytes) {
          pending.acknowledge(sentBytes);
          acknowledgedBytes = sentBytes;
        }
        continue;
      }
      if (isGone) return;
      if (finished !== undefined) break;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      await Promise.resolve(); // lets `finished` be set when that is what woke us
    }
  } finally {
    clearInterval(idle);
    pending.onEvents = undefined;
    if (isGone) ctx.respond = false;
  }
  if (pending.isForked) ctx.res.destroy();
  else end(ctx, finished, isOpen);
}

/** JSON texts as server-sent events. */
export function eventText(events: readonly string[]): string {
  return events.map((event) => `data: ${event}\n\n`).join('');
}

/** The convention's last event of a stream that went well. */
export const STREAM_END = 'data: [DONE]\n\n';

function end(ctx: Context, finished: FinishedFrame, isOpen: boolean): void {
  if (finished.state === 'succeeded') {
    if (!isOpen) open(ctx);
    ctx.res.end(STREAM_END);
    return;
  }
  const error = errorOf(finished);
  if (!isOpen) throw error;
  ctx.res.end(`data: ${JSON.stringify(errorBody(error.code, ctx.state.language, error.details))}\n\n`);
}

function open(ctx: Context): void {
  ctx.respond = false; // from here on the response is written by hand
  ctx.res.writeHead(200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-cache, no-transform',
    'X-Accel-Buffering': 'no',
  });
}

function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      res.off('drain', done);
      res.off('close', done);
      resolve();
    };
    res.once('drain', done);
    res.once('close', done);
    if (res.destroyed) done();
  });
}
