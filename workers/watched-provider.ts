/**
 * A provider as the circuit of its route sees it: when it was asked, when its answer began, and whether that came whole. Where another
 * route is left, it also bounds the wait for the first sign of an answer.
 */
import type { PaidJobPayload } from '../core/jobs.ts';
import type { Pass } from './circuit.ts';
import {
  type AnswerRoom,
  type ChatCall,
  type GrowingRoom,
  type ImageCall,
  type Provider,
  ProviderError,
} from './providers/provider.ts';
import { RunAborted } from './run.ts';

/** Of the time a request has left: how long the first sign may take while another route could still answer. */
const PATIENCE_SHARE = 1 / 2;
/** Of a request's whole time: a provider that had less than this (the request waited long with us) is not at fault for being slow. */
const FAIR_SHARE = 1 / 8;

export type RequestTimes = Pick<PaidJobPayload, 'createdAtMs' | 'deadlineAtMs'>;

interface WatchOptions {
  readonly pass: Pass;
  readonly times: RequestTimes;
  /** The request's own. */
  readonly signal: AbortSignal;
  /** No other route is left: it has all the time there is. */
  readonly isLast: boolean;
}

/** What the calls of one route have shown; of several, the last. */
export class Watch {
  readonly #options: WatchOptions;
  #askedAtMs: number | undefined;
  #hasBegun = false;
  #isWhole = false;
  #patience: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** A call is about to be made: the same call, which also ends when its first sign is waited for too long. */
  asked<Call extends { readonly signal: AbortSignal }>(call: Call): Call {
    this.over();
    this.#askedAtMs = Date.now();
    this.#hasBegun = false;
    this.#isWhole = false;
    this.#patience = undefined;
    if (this.#options.isLast) return call;
    const patience = new AbortController();
    this.#patience = patience;
    this.#timer = setTimeout(
      () => {
        const isTimeout = true;
        patience.abort(new ProviderError('unavailable', 'The provider shows no answer.', { isTimeout }));
      },
      (this.#options.times.deadlineAtMs - Date.now()) * PATIENCE_SHARE,
    );
    return { ...call, signal: AbortSignal.any([call.signal, patience.signal]) };
  }

  /** The first sign of an answer. */
  begun(): void {
    this.over();
    if (!this.#hasBegun) this.#options.pass.began();
    this.#hasBegun = true;
  }

  whole(): void {
    this.over();
    this.#isWhole = true;
  }

  /** Nothing is waited for any more. */
  over(): void {
    clearTimeout(this.#timer);
  }

  /** What a failed call says of its route. Of a whole answer only the content can be at fault (usage nobody believes). */
  tell(error: unknown): void {
    const { pass } = this.#options;
    const isFailure = this.#wasWaitedForInVain()
      ? this.#hadFairTime()
      : error instanceof ProviderError && error.isRoutable && !this.#isWhole;
    if (isFailure) pass.failed();
    else if (error instanceof ProviderError && !this.#wasWaitedForInVain()) pass.began();
    else pass.abandoned();
  }

  /** Asked, and silent until our patience or the request's time was over. */
  #wasWaitedForInVain(): boolean {
    if (this.#askedAtMs === undefined || this.#hasBegun || this.#isWhole) return false;
    const reason: unknown = this.#options.signal.reason;
    const isTooLate = reason instanceof RunAborted && reason.abortCause === 'deadline';
    return isTooLate || this.#patience?.signal.aborted === true;
  }

  #hadFairTime(): boolean {
    const { createdAtMs, deadlineAtMs } = this.#options.times;
    return Date.now() - (this.#askedAtMs ?? 0) >= (deadlineAtMs - createdAtMs) * FAIR_SHARE;
  }
}

export class WatchedProvider implements Provider {
  readonly #provider: Provider;
  readonly #watch: Watch;

  constructor(provider: Provider, watch: Watch) {
    this.#provider = provider;
    this.#watch = watch;
  }

  get name(): string {
    return this.#provider.name;
  }

  get kind(): string {
    return this.#provider.kind;
  }

  get chat(): Provider['chat'] {
    const { chat } = this.#provider;
    const watch = this.#watch;
    return (
      chat && {
        complete: (call) => whole(watch, chat.complete(chatCall(watch, call))),
        stream: (call) => begun(watch, () => chat.stream(watch.asked(call))),
      }
    );
  }

  get image(): Provider['image'] {
    const { image } = this.#provider;
    const watch = this.#watch;
    return (
      image && {
        produce: (call) => whole(watch, image.produce(imageCall(watch, call))),
        stream: (call) => begun(watch, () => image.stream(imageCall(watch, call))),
      }
    );
  }

  get speech(): Provider['speech'] {
    const { speech } = this.#provider;
    const watch = this.#watch;
    return speech && { ...speech, speak: (call) => begun(watch, () => speech.speak(watch.asked(call))) };
  }

  get transcription(): Provider['transcription'] {
    const { transcription } = this.#provider;
    const watch = this.#watch;
    return (
      transcription && {
        transcribe: (call) => whole(watch, transcription.transcribe(watch.asked(call))),
      }
    );
  }

  close(graceMs?: number): Promise<void> {
    return this.#provider.close(graceMs);
  }
}

/** An answer asks for room once it has begun to come: waiting for that is our doing. */
class WatchedRoom<Room extends AnswerRoom> implements AnswerRoom {
  readonly #watch: Watch;
  protected readonly room: Room;

  constructor(watch: Watch, room: Room) {
    this.#watch = watch;
    this.room = room;
  }

  enter(mostBytes: number): Promise<void> {
    this.#watch.begun();
    return this.room.enter(mostBytes);
  }

  leave(): void {
    this.room.leave();
  }
}

class WatchedGrowingRoom extends WatchedRoom<GrowingRoom> implements GrowingRoom {
  grow(bytes: number): Promise<void> {
    return this.room.grow(bytes);
  }
}

function chatCall(watch: Watch, call: ChatCall): ChatCall {
  const asked = watch.asked(call);
  return asked.room === undefined ? asked : { ...asked, room: new WatchedGrowingRoom(watch, asked.room) };
}

function imageCall(watch: Watch, call: ImageCall): ImageCall {
  const asked = watch.asked(call);
  return asked.room === undefined ? asked : { ...asked, room: new WatchedRoom(watch, asked.room) };
}

async function whole<Answer>(watch: Watch, asked: Promise<Answer>): Promise<Answer> {
  const answer = await asked;
  watch.whole();
  return answer;
}

/** Asked for when it is first read: until then the provider is not called. */
function begun<Item>(watch: Watch, ask: () => AsyncIterable<Item>): AsyncIterable<Item> {
  return { [Symbol.asyncIterator]: () => watchedItems(ask()[Symbol.asyncIterator](), watch) };
}

/** The same items; told are the first, and the end: a stream that ended well came whole. */
function watchedItems<Item>(items: AsyncIterator<Item>, watch: Watch): AsyncIterator<Item> {
  return {
    async next() {
      const result = await items.next();
      watch.begun();
      if (result.done === true) watch.whole();
      return result;
    },
    return: async () => (await items.return?.()) ?? { done: true, value: undefined },
  };
}
