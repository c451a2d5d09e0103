/**
 * How many answers full of pictures one worker has in memory at once. Requests wait at their providers without any; an answer is
 * taken from its socket when there is room for it, and gives the room back when its pictures are in the store, or it fails.
 */
import { ByteSemaphore } from '../../../core/byte-semaphore.ts';
import { type ImageJobInput, pixelsOf } from '../../../core/images.ts';
import type { AnswerRoom } from '../../providers/provider.ts';

export interface Room extends AnswerRoom {
  /** Whatever the body's length: what counts are the pictures. */
  enter(): Promise<void>;
}

export interface Rooms {
  /** For the answer to one request. */
  for(input: Pick<ImageJobInput, 'size' | 'count'>): Room;
}

/** What a pixel takes at most in a usual picture: three bytes that hardly compress, in base64. */
const BYTES_A_PIXEL = 4;

export function makeRooms(totalBytes: number): Rooms {
  const places = new ByteSemaphore(totalBytes);
  return {
    for({ size, count }) {
      const bytes = pixelsOf(size) * count * BYTES_A_PIXEL;
      let entered: ReturnType<typeof places.acquire> | undefined;
      return {
        async enter() {
          entered ??= places.acquire(bytes);
          await entered;
        },
        leave() {
          // a place in the queue cannot be given up: when its turn comes it is passed on
          void entered?.then((release) => release());
          entered = undefined;
        },
      };
    },
  };
}
