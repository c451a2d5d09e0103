/**
 * What a manifest says, made fit for an answer in JSON: a stranger wrote it, so depth, length and number of values are bounded.
 */

const MAX_DEPTH = 8;
const MAX_VALUES = 1000;
const MAX_TEXT_LENGTH = 500;
/** Longer byte strings (thumbnails, padding) are told by their length. */
const MAX_SHOWN_BYTES = 64;

/** Counts down over one answer. */
export interface ValueBudget {
  left: number;
}

export function makeBudget(): ValueBudget {
  return { left: MAX_VALUES };
}

/** A value of CBOR or JSON as plain JSON; `null` for what is left out. */
export function toPlain(value: unknown, budget: ValueBudget, depth = 0): unknown {
  budget.left -= 1;
  if (budget.left < 0 || depth > MAX_DEPTH) return null;
  if (typeof value === 'string') return toText(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value === 'boolean') return value;
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return null;
  if (value instanceof Date) return toTime(value);
  if (value instanceof Uint8Array) {
    return value.length > MAX_SHOWN_BYTES
      ? { bytes: value.length }
      : Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  }
  if (Array.isArray(value)) {
    return value.slice(0, Math.max(budget.left, 0)).map((one) => toPlain(one, budget, depth + 1));
  }
  const entries: [string, unknown][] = [];
  for (const name of Object.keys(value)) {
    if (budget.left <= 0) break;
    const inside = (value as Record<string, unknown>)[name];
    if (typeof inside !== 'function') entries.push([toText(name), toPlain(inside, budget, depth + 1)]);
  }
  return Object.fromEntries(entries);
}

export function toText(text: string): string {
  return text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text;
}

/** A point in time as ISO 8601; null when it is none. */
export function toTime(value: unknown): string | null {
  if (!(value instanceof Date) && typeof value !== 'string') return null;
  const time = new Date(value);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}
