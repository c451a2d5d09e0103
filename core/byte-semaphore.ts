/**
 * A limit on bytes in memory at once, handed out in order of asking. Counted in pieces of 64 KB: async-mutex counts down from what
 * is free, one by one, whenever something is given back, which for 96 million would hold up the event loop for a tenth of a second.
 */
import { Semaphore } from 'async-mutex';

/** Gives back what was acquired. */
export type Release = () => void;

const PIECE_BYTES = 64 * 1024;

export class ByteSemaphore {
  readonly #totalPieces: number;
  readonly #pieces: Semaphore;

  constructor(totalBytes: number) {
    this.#totalPieces = piecesOf(totalBytes);
    this.#pieces = new Semaphore(this.#totalPieces);
  }

  /** Who asks for more than there is waits for all of it. Rejects when `givenUp` does before there is room. */
  async acquire(bytes: number, givenUp?: Promise<never>): Promise<Release> {
    const pieces = Math.min(this.#totalPieces, piecesOf(bytes));
    const acquiring = this.#pieces.acquire(pieces);
    try {
      const [, release] = await (givenUp === undefined ? acquiring : Promise.race([acquiring, givenUp]));
      return release;
    } catch (error) {
      // a place in the queue cannot be given up: when its turn comes it is passed on
      void acquiring.then(([, release]) => release());
      throw error;
    }
  }

  get freeBytes(): number {
    return this.#pieces.getValue() * PIECE_BYTES;
  }
}

function piecesOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / PIECE_BYTES));
}
