/**
 * A map for what comes and goes with every request. A `Map` would keep whatever it held alive until a full collection: V8 gives a
 * `Map` or `Set` a new table every few insertions and lets the old table point to the new one, so that once a full collection has moved
 * one table to the old space, every later table, and all that was in it, survives each collection of the new space and moves there too
 * (docs/decisions/0023-what-outlives-its-request.md). Here the table stays the same, and an entry points to older ones only. (An object's
 * properties would do as well, at three times the cost: each new key is entered into V8's table of all names.)
 */

interface Entry<Value> {
  readonly key: string;
  value: Value;
  /** Older than this one. */
  next: Entry<Value> | undefined;
}

/** A power of two, far above what is usually held at once. */
const CHAINS = 4096;
/** Keys differ at their end: ids are random there, counters count there. */
const HASHED_CHARACTERS = 12;

export class TransientMap<Value> {
  /** By the hash of their keys; each chain begins with its newest entry. */
  readonly #chains: (Entry<Value> | undefined)[] = Array.from({ length: CHAINS }, () => undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: string): Value | undefined {
    return this.#find(key, chainOf(key))?.value;
  }

  set(key: string, value: Value): void {
    const chain = chainOf(key);
    const entry = this.#find(key, chain);
    if (entry !== undefined) {
      entry.value = value;
      return;
    }
    this.#chains[chain] = { key, value, next: this.#chains[chain] };
    this.#size += 1;
  }

  /** Whether it was there. */
  delete(key: string): boolean {
    const chain = chainOf(key);
    let newer: Entry<Value> | undefined;
    let entry = this.#chains[chain];
    while (entry !== undefined && entry.key !== key) {
      newer = entry;
      entry = entry.next;
    }
    if (entry === undefined) return false;
    if (newer === undefined) this.#chains[chain] = entry.next;
    else newer.next = entry.next;
    this.#size -= 1;
    return true;
  }

  /** As of now: what comes or goes meanwhile changes nothing. In no order. */
  values(): Value[] {
    const values: Value[] = [];
    for (const newest of this.#chains) {
      for (let entry = newest; entry !== undefined; entry = entry.next) values.push(entry.value);
    }
    return values;
  }

  #find(key: string, chain: number): Entry<Value> | undefined {
    let entry = this.#chains[chain];
    while (entry !== undefined && entry.key !== key) entry = entry.next;
    return entry;
  }
}

function chainOf(key: string): number {
  let hash = 0;
  for (let index = Math.max(key.length - HASHED_CHARACTERS, 0); index < key.length; index += 1) {
    hash = (hash * 31 + key.charCodeAt(index)) | 0;
  }
  return hash & (CHAINS - 1);
}
