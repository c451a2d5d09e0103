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
  /** A batch has items of one key only, and no other of that key is under way beside it: who comes later lets others pass. */
  readonly keyOf?: (item: Item) => string;
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

/** For `take`: how many of the first items have a size of at most `most` together. */
export function countWithin<Item>(
  items: readonly Item[],
  sizeOf: (item: Item) => number,
  most: number,
): number {
  let size = 0;
  const end = items.findIndex((item) => {
    size += sizeOf(item);
    return size > most;
  });
  return end < 0 ? items.length : end;
}

export function makeCoalescer<Item, Result>(
  options: CoalescerOptions<Item, Result>,
): Coalescer<Item, Result> {
  let waiting: Waiting<Item, Result>[] = [];
  let inFlight = 0;
  let isScheduled = false;
  const busyKeys = new Set<string>();
  const idle: (() => void)[] = [];

  /** Takes the next batch out of what waits; none where all of it belongs to keys under way. */
  function takeBatch(): Waiting<Item, Result>[] {
    const { keyOf, take, maxBatch } = options;
    let candidates = waiting;
    if (keyOf !== undefined) {
      const first = waiting.find(({ item }) => !busyKeys.has(keyOf(item)));
      candidates = first === undefined ? [] : waiting.filter(({ item }) => keyOf(item) === keyOf(first.item));
    }
    let batch = candidates.slice(0, maxBatch);
    if (take !== undefined && batch.length > 0) {
      batch = batch.slice(0, Math.max(1, take(batch.map(({ item }) => item))));
    }
    waiting =
      candidates === waiting
        ? waiting.slice(batch.length)
        : waiting.filter((entry) => !batch.includes(entry));
    return batch;
  }

  function schedule(): void {
    if (isScheduled || inFlight >= options.maxInFlight || waiting.length === 0) return;
    isScheduled = true;
    setImmediate(flush);
  }

  function flush(): void {
    isScheduled = false;
    if (inFlight >= options.maxInFlight || waiting.length === 0) return;
    const batch = takeBatch();
    const [first] = batch;
    if (first === undefined) return;
    const items = batch.map(({ item }) => item);
    const key = options.keyOf?.(first.item);
    if (key !== undefined) busyKeys.add(key);
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
        if (key !== undefined) busyKeys.delete(key);
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
