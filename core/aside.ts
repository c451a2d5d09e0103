/**
 * A lane beside others, for what held up or failed a batch: it goes on here, each account by itself, so that neither its neighbours
 * nor the next batches wait for a balance that somebody has locked, or fail with what the database cannot take.
 */
import { type Coalescer, makeCoalescer } from './coalesce.ts';
import { isConnectionError, isTimeoutError } from './database.ts';

/** Who is not locked need not wait for who is. Connections that may wait for locks. */
const MAX_IN_FLIGHT = 2;

export interface AsideOptions<Item, Result> {
  readonly accountOf: (item: Item) => string;
  /** Answers every item, in order; throws what the database says of the batch, timeouts of its locks at once. */
  readonly run: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly maxBatch: number;
  /** How many of these, all of one account, may go together. */
  readonly take: (items: readonly Item[]) => number;
  /** How long an item waits here for what somebody has locked. */
  readonly patienceMs: number;
  /** What it is told then. */
  readonly tooLong: (cause: unknown) => Error;
}

export interface Aside<Item, Result> {
  /** While an account has items here, its next ones belong here too. */
  has(accountId: string): boolean;
  add(item: Item): Promise<Result>;
  /** The same batch in a lane of its own: what holds it up or fails it together goes aside. */
  guard<Answer>(
    run: (items: readonly Item[]) => Promise<readonly Answer[]>,
  ): (items: readonly Item[]) => Promise<readonly (Answer | Promise<Result>)[]>;
  drain(): Promise<void>;
}

interface Entry<Item> {
  readonly item: Item;
  readonly since: number;
}

export function makeAside<Item, Result>(options: AsideOptions<Item, Result>): Aside<Item, Result> {
  const { accountOf, run, take, patienceMs, tooLong } = options;
  const countByAccount = new Map<string, number>();
  const lane: Coalescer<Entry<Item>, Result | Promise<Result>> = makeCoalescer({
    maxBatch: options.maxBatch,
    maxInFlight: MAX_IN_FLIGHT,
    keyOf: ({ item }) => accountOf(item),
    take: (entries) => take(entries.map(({ item }) => item)),
    run: runHere,
  });

  /** What is still locked goes to the end of the lane. */
  async function runHere(entries: readonly Entry<Item>[]): Promise<readonly (Result | Promise<Result>)[]> {
    const items = entries.map(({ item }) => item);
    try {
      return await run(items);
    } catch (error) {
      if (isTimeoutError(error)) return entries.map((entry) => again(entry, error));
      if (items.length === 1 || isConnectionError(error)) throw error;
      return await runOneByOne(entries);
    }
  }

  async function runOneByOne(entries: readonly Entry<Item>[]): Promise<(Result | Promise<Result>)[]> {
    const answers: PromiseSettledResult<readonly (Result | Promise<Result>)[]>[] = [];
    for (const entry of entries) {
      const [one] = await Promise.allSettled([runHere([entry])]);
      answers.push(one);
    }
    return answers.map((one) =>
      one.status === 'fulfilled' ? (one.value[0] as Result | Promise<Result>) : Promise.reject(one.reason),
    );
  }

  async function again(entry: Entry<Item>, error: unknown): Promise<Result> {
    if (Date.now() >= entry.since + patienceMs) throw tooLong(error);
    return await lane.add(entry);
  }

  async function add(item: Item): Promise<Result> {
    const accountId = accountOf(item);
    countByAccount.set(accountId, (countByAccount.get(accountId) ?? 0) + 1);
    try {
      return await lane.add({ item, since: Date.now() });
    } finally {
      const left = (countByAccount.get(accountId) ?? 1) - 1;
      if (left === 0) countByAccount.delete(accountId);
      else countByAccount.set(accountId, left);
    }
  }

  return {
    has: (accountId) => countByAccount.has(accountId),
    add,
    guard: (runLane) => async (items) => {
      try {
        return await runLane(items);
      } catch (error) {
        const isShared = items.length > 1 && !isConnectionError(error);
        if (!isShared && !isTimeoutError(error)) throw error;
        return items.map(add);
      }
    },
    drain: () => lane.drain(),
  };
}
