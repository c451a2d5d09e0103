/**
 * Leaves a route alone that keeps failing: closed, it counts consecutive failures; open, it lets nobody through for a while,
 * then one probe. Nobody ever waits for a probe: others are sent away at once. Why not cockatiel's policy: docs/decisions/0013.
 */
import { ConsecutiveBreaker } from 'cockatiel';

/** One call's leave to pass. Tell it what became of the call; a caller who left before an answer is `abandoned`. */
export interface Pass {
  /** The first sign of an answer, were it a refusal: a probe has passed. */
  began(): void;
  succeeded(): void;
  /** The route was at fault. */
  failed(): void;
  /** Nothing was learned. */
  abandoned(): void;
}

export class Circuit {
  readonly #openMs: number;
  readonly #breaker: ConsecutiveBreaker;
  /** When it opened, or when the last probe was let through; undefined while closed. */
  #openedAt: number | undefined;

  constructor(options: { readonly failures: number; readonly openMs: number }) {
    this.#openMs = options.openMs;
    this.#breaker = new ConsecutiveBreaker(options.failures);
  }

  /** Also while it may be probed: nobody is to count on it. */
  get isOpen(): boolean {
    return this.#openedAt !== undefined;
  }

  /** Undefined: take another route. A probe that shows nothing for `openMs` does not keep the next one waiting longer. */
  enter(): Pass | undefined {
    const isProbe = this.#openedAt !== undefined;
    if (this.#openedAt !== undefined) {
      if (Date.now() - this.#openedAt < this.#openMs) return undefined;
      this.#openedAt = Date.now();
    }
    const began = (): void => {
      if (isProbe && this.#openedAt !== undefined) this.#close();
    };
    return {
      began,
      succeeded: () => {
        began();
        // one that was let through before it opened does not close it
        if (this.#openedAt === undefined) this.#breaker.success();
      },
      failed: () => {
        if (this.#openedAt === undefined) {
          if (this.#breaker.failure()) this.#openedAt = Date.now();
        } else if (isProbe) this.#openedAt = Date.now();
      },
      abandoned: () => {
        if (isProbe && this.#openedAt !== undefined) this.#openedAt = Number.NEGATIVE_INFINITY;
      },
    };
  }

  #close(): void {
    this.#openedAt = undefined;
    this.#breaker.success();
  }
}
