/**
 * A limit on bytes in memory at once, handed out in order of asking. Counted in pieces of 64 KB: async-mutex counts down from what
 * is free, one by one, whenever something is given back, which for 96 million would hold up the event loop for a tenth of a second.
 */
import { Semaphore } from 'async-mutex';

const PIECE_BYTES = 64 * 1024;

export class ByteSemaphore {
  readonly #totalPieces: number;
  readonly #pieces: Semaphore;

  constructor(totalBytes: number) {
    this.#totalPieces = Math.max(1, Math.floor(totalBytes / PIECE_BYTES));
    this.#pieces = new Semaphore(this.#totalPieces);
  }

  /** Resolves with what gives them back. Who asks for more than there is waits for all of it. */
  async acquire(bytes: number): Promise<() => void> {
    const pieces = Math.min(this.#totalPieces, Math.max(1, Math.ceil(bytes / PIECE_BYTES)));
    const [, release] = await this.#pieces.acquire(pieces);
    return release;
  }

  get freeBytes(): number {
    return this.#pieces.getValue() * PIECE_BYTES;
  }
}
