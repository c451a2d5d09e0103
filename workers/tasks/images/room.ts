/**
 * How many answers full of pictures one worker has in memory at once. Requests wait at their providers without any; an answer is
 * taken from its socket when there is room for it, and gives the room back when its pictures are in the store.
 */
import { Semaphore } from 'async-mutex';
import { type ImageJobInput, pixelsOf } from '../../../core/images.ts';

export interface Room {
  /** Resolves at once when it was entered before. Rejects when it was left. */
  enter(): Promise<void>;
  leave(): void;
}

export interface Rooms {
  /** For the answer to one request. */
  for(input: Pick<ImageJobInput, 'size' | 'count'>): Room;
}

/** What a pixel takes at most in a usual picture: three bytes that hardly compress, in base64. */
const BYTES_A_PIXEL = 4;

/** The semaphore takes time for each unit that is free: counted in bytes it would stand still for half a second. */
const UNIT_BYTES = 64 * 1024;

export function makeRooms(totalBytes: number): Rooms {
  const total = Math.max(1, Math.floor(totalBytes / UNIT_BYTES));
  const places = new Semaphore(total);
  return {
    for({ size, count }) {
      const units = Math.min(total, Math.ceil((pixelsOf(size) * count * BYTES_A_PIXEL) / UNIT_BYTES));
      let entered: ReturnType<typeof places.acquire> | undefined;
      let isLeft = false;
      return {
        async enter() {
          if (isLeft) throw new Error('the answer came after its request had ended');
          entered ??= places.acquire(Math.max(1, units));
          await entered;
        },
        leave() {
          isLeft = true;
          // a place in the queue cannot be given up: when its turn comes it is passed on
          void entered?.then(([, release]) => release());
        },
      };
    },
  };
}
