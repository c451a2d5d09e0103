/**
 * Coalescing: items that arrive while a batch is under way go into the next one. A lone item leaves on the next turn of the
 * event loop, so nothing waits when there is nothing to share with; under load one round trip and one commit serve many.
 */

export interface CoalescerOptions<Item, Result> {
  /** Answers every item, in order; a rejection goes to all of them. */
  readonly run: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly maxBatch: number;
  /** How many of those waiting (at most maxBatch, oldest first) may share the next batch; one leaves in any case. */
  readonly take?: (items: readonly Item[]) => number;
  /** Batches under way at once. */
  readonly maxInFlight: number;
}

export interface Coalescer<Item, Result> {
  add(item: Item): Promise<Result>;
  /** Resolves when nothing is waiting or under way. */
  drain(): Promise<void>;
  readonly size: number;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (reason: unknown) => void;
}

export function makeCoalescer<Item, Result>(
  options: CoalescerOptions<Item, Result>,
): Coalescer<Item, Result> {
  let waiting: Waiting<Item, Result>[] = [];
  let inFlight = 0;
  let isScheduled = false;
  const idle: (() => void)[] = [];

  function schedule(): void {
    if (isScheduled || inFlight >= options.maxInFlight || waiting.length === 0) return;
    isScheduled = true;
    setImmediate(flush);
  }

  function flush(): void {
    isScheduled = false;
    if (inFlight >= options.maxInFlight || waiting.length === 0) return;
    let batch = waiting.slice(0, options.maxBatch);
    let items = batch.map((entry) => entry.item);
    if (options.take !== undefined) {
      const count = Math.max(1, options.take(items));
      batch = batch.slice(0, count);
      items = items.slice(0, count);
    }
    waiting = waiting.slice(batch.length);
    inFlight += 1;
    options
      .run(items)
      .then(
        (results) => {
          batch.forEach((entry, index) => {
            entry.resolve(results[index] as Result);
          });
        },
        (error: unknown) => {
          for (const entry of batch) entry.reject(error);
        },
      )
      .finally(() => {
        inFlight -= 1;
        schedule();
        if (inFlight > 0 || waiting.length > 0) return;
        for (const resolve of idle.splice(0)) resolve();
      });
    schedule();
  }

  return {
    add(item) {
      return new Promise<Result>((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        schedule();
      });
    },
    drain() {
      if (inFlight === 0 && waiting.length === 0) return Promise.resolve();
      return new Promise((resolve) => {
        idle.push(resolve);
      });
    },
    get size() {
      return waiting.length;
    },
  };
}
