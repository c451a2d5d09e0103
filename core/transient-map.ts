/**
 * A map for what comes and goes with every request. A `Map` would keep whatever it held alive until a full collection: V8 gives a
 * `Map` or `Set` a new table every few insertions and lets the old table point to the new one, so that once a full collection has moved
 * one table to the old space, every later table, and all that was in it, survives each collection of the new space and moves there too
 * (docs/decisions/0023-what-outlives-its-request.md). The table of an object's properties has no such pointer.
 */
export class TransientMap<Value> {
  readonly #values: Record<string, Value> = Object.create(null) as Record<string, Value>;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: string): Value | undefined {
    return this.#values[key];
  }

  set(key: string, value: Value): void {
    if (!(key in this.#values)) this.#size += 1;
    this.#values[key] = value;
  }

  /** Whether it was there. */
  delete(key: string): boolean {
    if (!(key in this.#values)) return false;
    this.#size -= 1;
    return delete this.#values[key];
  }

  /** As of now: what comes or goes meanwhile changes nothing. */
  values(): Value[] {
    return Object.values(this.#values);
  }
}
