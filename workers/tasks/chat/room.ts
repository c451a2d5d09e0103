/**
 * How many large chat answers one worker has in memory at once. An answer over 64 KB is taken from its socket when there is room
 * for its bytes, and parsed when there is room for what becomes of it, which is several times as much; that is held until the request is
 * settled. Two rooms, because a provider may be slow and we are not: who waits for bytes keeps nobody from being settled.
 */
import { ByteSemaphore, type Release } from '../../../core/byte-semaphore.ts';
import type { GrowingRoom } from '../../providers/provider.ts';
import type { Run } from '../../run.ts';

/** Of answers on their way from their sockets, outside the heap: four of the largest, or of those that do not say how large they are. */
const ARRIVING_BYTES = 64 * 1024 * 1024;

export interface ChatRooms {
  /** For the answer to this request; left when it has ended. */
  for(run: Pick<Run, 'signal' | 'over'>): GrowingRoom;
}

export function makeChatRooms(totalBytes: number): ChatRooms {
  const arriving = new ByteSemaphore(ARRIVING_BYTES);
  const parsed = new ByteSemaphore(totalBytes);
  return { for: (run) => new ChatRoom(run, arriving, parsed) };
}

/** A class, since every chat that is not streamed makes one and hardly any enters it. */
class ChatRoom implements GrowingRoom {
  readonly #run: Pick<Run, 'signal' | 'over'>;
  readonly #arriving: ByteSemaphore;
  readonly #parsed: ByteSemaphore;
  #placeToArrive: Promise<Release> | undefined;
  #placeToBeParsed: Promise<Release> | undefined;

  constructor(run: Pick<Run, 'signal' | 'over'>, arriving: ByteSemaphore, parsed: ByteSemaphore) {
    this.#run = run;
    this.#arriving = arriving;
    this.#parsed = parsed;
  }

  async enter(mostBytes: number): Promise<void> {
    this.leave(); // an answer before it came whole and was none
    void this.#run.over.then(() => this.leave());
    this.#placeToArrive = this.#arriving.acquire(mostBytes);
    await this.#placeToArrive;
  }

  async grow(bytes: number): Promise<void> {
    const { signal } = this.#run;
    signal.throwIfAborted();
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    this.#placeToBeParsed = this.#parsed.acquire(bytes, stopped);
    await this.#placeToBeParsed;
    signal.removeEventListener('abort', stop);
    giveBack(this.#placeToArrive);
    this.#placeToArrive = undefined;
  }

  leave(): void {
    giveBack(this.#placeToArrive);
    giveBack(this.#placeToBeParsed);
    this.#placeToArrive = undefined;
    this.#placeToBeParsed = undefined;
  }
}

/** A place in the queue cannot be given up: when its turn comes it is passed on. */
function giveBack(place: Promise<Release> | undefined): void {
  void place?.then(
    (release) => release(),
    () => undefined,
  );
}
