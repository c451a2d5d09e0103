/**
 * Server-sent events to the caller, at the caller's pace: what it has not taken is not acknowledged, and the worker stops
 * reading from the provider when too much is unacknowledged. A caller that leaves ends the request.
 */
import type { ServerResponse } from 'node:http';
import type { Config } from '../core/config.ts';
import { errorBody } from '../core/errors.ts';
import type { FinishedFrame } from '../core/relay/frames.ts';
import type { Context } from './context.ts';
import type { Pending } from './pending.ts';
import { errorOf } from './results.ts';

/** How an area's events are written. */
export interface StreamShape {
  /** Text at once, or bit by bit where a file stands in it: then never more of it than the caller takes. */
  text(events: readonly string[]): string | AsyncIterable<string>;
  /** What follows the last event when all went well. */
  readonly end: string;
  /** Headers go out after this long although there is no event yet; none: with the first event or comment. */
  readonly openAfterMs?: number;
  /** A caller that leaves ends its request; else it is finished, to be collected. */
  readonly stopWhenCallerLeaves: boolean;
}

/** Bytes taken between two acknowledgements, and never more than a quarter of what may be in flight. */
const ACKNOWLEDGE_BYTES = 64 * 1024;

/** As the worker counts it: "data: " and the blank line. */
export const FRAMING_BYTES = 8;

type StreamConfig = Pick<Config, 'streamCommentSeconds' | 'streamWindowBytes' | 'slowReaderSeconds'>;

/**
 * Relays a stream to its end. Nothing is sent before the first event, so a request that fails at once is answered with its
 * proper status; after that an error is the stream's last event.
 */
export async function streamEvents(
  ctx: Context,
  config: StreamConfig,
  pending: Pending,
  shape: StreamShape = EVENTS_AS_THEY_ARE,
): Promise<void> {
  const writer = makeWriter(ctx, config, shape);
  let finished: FinishedFrame | 'left' | 'late';
  try {
    finished = await readEvents(ctx, config, pending, writer, shape);
  } finally {
    writer.stop();
  }
  if (typeof finished === 'string') return;
  if (pending.isForked) ctx.res.destroy();
  else end(ctx, finished, writer.isOpen, shape);
}

/** Who takes a stream's events. */
export interface EventWriter {
  readonly isOpen: boolean;
  /** Of events, as the worker counts them. */
  readonly sentBytes: number;
  /** Resolves when the caller has taken them, as far as that can be told. */
  write(events: readonly string[]): Promise<void>;
}

/**
 * Hands events over as they come, until the request has finished: answers how. `late`: there was nothing to send for
 * `lateMs`, and nothing has been sent. When the caller leaves the request is stopped, or goes on without a reader.
 */
export async function readEvents(
  ctx: Context,
  config: Pick<Config, 'streamWindowBytes'>,
  pending: Pending,
  writer: EventWriter,
  how: { readonly stopWhenCallerLeaves: boolean; readonly lateMs?: number },
): Promise<FinishedFrame | 'left' | 'late'> {
  const { res } = ctx;
  let isGone = false;
  let isLate = false;
  let wake = (): void => {};
  const leave = (): void => {
    if (res.writableFinished || isGone) return;
    isGone = true;
    if (how.stopWhenCallerLeaves) pending.abort();
    else pending.leave();
    wake();
  };
  const beLate = (): void => {
    isLate = true;
    wake();
  };
  const timer = how.lateMs === undefined ? undefined : setTimeout(beLate, how.lateMs);
  res.once('close', leave);
  if (res.destroyed) leave(); // gone while the request was being submitted
  pending.onEvents = () => wake();

  let finished: FinishedFrame | undefined;
  void pending.finished.then((frame) => {
    finished = frame;
    wake(); // also when it was finished before anybody asked
  });

  let acknowledgedBytes = 0;
  const acknowledgeBytes = Math.min(ACKNOWLEDGE_BYTES, config.streamWindowBytes / 4);
  try {
    for (;;) {
      const events = pending.takeEvents();
      if (events.length > 0) {
        await writer.write(events);
        if (writer.sentBytes - acknowledgedBytes >= acknowledgeBytes) {
          pending.acknowledge(writer.sentBytes);
          acknowledgedBytes = writer.sentBytes;
        }
        continue;
      }
      if (isGone) return 'left';
      if (finished !== undefined) return finished;
      if (isLate && !writer.isOpen) {
        pending.leave();
        return 'late';
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      await Promise.resolve(); // lets `finished` be set when that is what woke us
    }
  } finally {
    clearTimeout(timer);
    pending.onEvents = undefined;
    if (isGone) ctx.respond = false;
  }
}

/** Events that are stored, from the first to the last. */
export async function replayEvents(
  ctx: Context,
  config: StreamConfig,
  events: readonly string[],
  shape: StreamShape = EVENTS_AS_THEY_ARE,
): Promise<void> {
  const writer = makeWriter(ctx, config, shape);
  try {
    await writer.write(events);
    writer.open();
  } finally {
    writer.stop();
  }
  ctx.res.end(shape.end);
}

interface Writer extends EventWriter {
  /** Sends the headers, where that was not done. */
  open(): void;
  /** No more comments. */
  stop(): void;
}

/** Writes at the caller's pace, and a comment whenever there was nothing for a while. */
function makeWriter(ctx: Context, config: StreamConfig, shape: StreamShape): Writer {
  const { res } = ctx;
  let isOpen = false;
  let isWriting = false;
  let sentBytes = 0;
  const openNow = (): void => {
    if (!isOpen) writeHead(ctx);
    isOpen = true;
  };
  const idle = setInterval(() => {
    if (isWriting) return; // an event that is written bit by bit must not be torn apart
    openNow();
    res.write(': waiting\n\n');
  }, config.streamCommentSeconds * 1000);
  const opening =
    shape.openAfterMs === undefined
      ? undefined
      : setTimeout(() => {
          if (isWriting || res.destroyed) return;
          openNow();
          res.flushHeaders();
        }, shape.openAfterMs);

  async function writeBits(bits: AsyncIterable<string>, events: readonly string[]): Promise<void> {
    isWriting = true;
    try {
      for await (const bit of bits) {
        openNow();
        if (res.destroyed) break;
        if (!res.write(bit)) await drained(res, config.slowReaderSeconds * 1000);
      }
    } catch (error) {
      if (!isOpen) throw error;
      res.destroy(); // half an event is out: only the end of the connection can tell
    } finally {
      isWriting = false;
    }
    for (const event of events) sentBytes += Buffer.byteLength(event) + FRAMING_BYTES;
  }

  return {
    get isOpen() {
      return isOpen;
    },
    get sentBytes() {
      return sentBytes;
    },
    open: openNow,
    async write(events) {
      idle.refresh();
      const text = shape.text(events);
      if (typeof text !== 'string') {
        await writeBits(text, events);
        return;
      }
      openNow();
      sentBytes += Buffer.byteLength(text);
      if (!res.write(text)) await drained(res);
    },
    stop() {
      clearInterval(idle);
      clearTimeout(opening);
    },
  };
}

/** JSON texts as server-sent events. */
function eventText(events: readonly string[]): string {
  return events.map((event) => `data: ${event}\n\n`).join('');
}

/** Chat: an event is what the worker made it, and the convention has a last one. */
const EVENTS_AS_THEY_ARE: StreamShape = {
  text: eventText,
  end: 'data: [DONE]\n\n',
  stopWhenCallerLeaves: true,
};

function end(ctx: Context, finished: FinishedFrame, isOpen: boolean, shape: StreamShape): void {
  if (finished.state === 'succeeded') {
    if (!isOpen) writeHead(ctx);
    ctx.res.end(shape.end);
    return;
  }
  const error = errorOf(finished);
  if (!isOpen) throw error;
  ctx.res.end(`data: ${JSON.stringify(errorBody(error.code, ctx.state.language, error.details))}\n\n`);
}

function writeHead(ctx: Context): void {
  ctx.respond = false; // from here on the response is written by hand
  ctx.res.writeHead(200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-cache, no-transform',
    'X-Accel-Buffering': 'no',
  });
}

/** Resolves when more can be written, or nobody is there any more; a reader that takes nothing for so long is cut off. */
export function drained(res: ServerResponse, patienceMs?: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = patienceMs === undefined ? undefined : setTimeout(() => res.destroy(), patienceMs);
    const done = (): void => {
      clearTimeout(timer);
      res.off('drain', done);
      res.off('close', done);
      resolve();
    };
    res.once('drain', done);
    res.once('close', done);
    if (res.destroyed) done();
  });
}
