/**
 * The turns of heavy requests within one worker: so many at once, with so many bytes of inputs in memory. Who waits holds nothing
 * but a slot of the queue's heavy lane. Next is the account with the fewest under way, and none takes every place.
 */

/** Bytes of inputs in this worker's memory, of all that have places; a single request may be larger when it is alone. */
export interface InputBudget {
  readonly totalBytes: number;
  usedBytes: number;
  /** Called when some are free again. */
  readonly onFree: Set<() => void>;
}

export function makeInputBudget(totalBytes: number): InputBudget {
  return { totalBytes, usedBytes: 0, onFree: new Set() };
}

export interface PlacesOptions {
  /** Requests at once. */
  readonly count: number;
  readonly inputs: InputBudget;
}

export interface Turn {
  readonly accountId: string;
  /** Of the files it will read. */
  readonly inputBytes: number;
  readonly signal: AbortSignal;
}

export interface Places {
  /** Runs `work` when it is its turn; rejects with the signal's reason when that comes first. */
  inTurn<Result>(turn: Turn, work: () => Promise<Result>): Promise<Result>;
}

/** Of the places, what one account cannot take, and one at least: somebody else's request begins at once. */
const OTHERS_SHARE = 1 / 8;
/** Of the bytes, what one account may take, unless it is a single request. */
const ACCOUNT_BYTES_SHARE = 1 / 2;

interface Use {
  places: number;
  bytes: number;
}

interface Waiting extends Turn {
  readonly begin: () => void;
}

export function makePlaces({ count, inputs }: PlacesOptions): Places {
  const mostOfAccount = Math.max(1, count - Math.max(1, Math.floor(count * OTHERS_SHARE)));
  const mostBytesOfAccount = inputs.totalBytes * ACCOUNT_BYTES_SHARE;
  let taken = 0;
  const byAccount = new Map<string, Use>();
  const waiting = new Set<Waiting>();

  const useOf = (accountId: string): Use => byAccount.get(accountId) ?? { places: 0, bytes: 0 };

  function next(): Waiting | undefined {
    if (taken >= count) return undefined;
    // the order of arrival among those of accounts with as much under way
    const inOrder = [...waiting].sort((a, b) => useOf(a.accountId).places - useOf(b.accountId).places);
    let areBytesTaken = false;
    return inOrder.find((turn) => {
      const own = useOf(turn.accountId);
      if (own.places >= mostOfAccount) return false;
      if (turn.inputBytes === 0) return true;
      if (own.bytes > 0 && own.bytes + turn.inputBytes > mostBytesOfAccount) return false;
      // smaller ones behind it would keep a large one waiting for ever
      areBytesTaken ||= inputs.usedBytes > 0 && inputs.usedBytes + turn.inputBytes > inputs.totalBytes;
      return !areBytesTaken;
    });
  }

  function admit(): void {
    for (let turn = next(); turn !== undefined; turn = next()) {
      waiting.delete(turn);
      note(turn, 1);
      turn.begin();
    }
  }

  function note({ accountId, inputBytes: bytes }: Turn, by: 1 | -1): void {
    const own = useOf(accountId);
    taken += by;
    own.places += by;
    own.bytes += by * bytes;
    inputs.usedBytes += by * bytes;
    if (own.places === 0) byAccount.delete(accountId);
    else byAccount.set(accountId, own);
  }

  function wait(turn: Turn): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        waiting.delete(waiter);
        reject(turn.signal.reason as Error);
        admit(); // it may have kept others behind it waiting
      };
      const waiter: Waiting = {
        ...turn,
        begin: () => {
          turn.signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      turn.signal.addEventListener('abort', leave, { once: true });
      waiting.add(waiter);
      admit();
    });
  }

  inputs.onFree.add(admit);
  return {
    async inTurn(turn, work) {
      turn.signal.throwIfAborted();
      await wait(turn);
      try {
        return await work();
      } finally {
        note(turn, -1);
        for (const look of inputs.onFree) look();
      }
    },
  };
}
