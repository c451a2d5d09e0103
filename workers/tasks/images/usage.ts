/** A provider's usage object, of which only counts are passed on and kept: names and whole numbers, a few levels deep. */

const MAX_DEPTH = 3;
const MAX_NAMES = 32;
const NAME = /^[a-z0-9_]{1,64}$/i;

type Counts = Readonly<Record<string, unknown>>;

export function countsOf(usage: Counts | undefined): Counts | null {
  if (usage === undefined) return null;
  const counts = pick(usage, MAX_DEPTH);
  return Object.keys(counts).length === 0 ? null : counts;
}

function pick(object: Counts, depth: number): Counts {
  const picked = Object.entries(object)
    .filter(([name]) => NAME.test(name))
    .slice(0, MAX_NAMES)
    .flatMap(([name, value]): [string, unknown][] => {
      if (Number.isSafeInteger(value)) return [[name, value]];
      const isDeeper = typeof value === 'object' && value !== null && !Array.isArray(value) && depth > 1;
      return isDeeper ? [[name, pick(value as Counts, depth - 1)]] : [];
    });
  return Object.fromEntries(picked);
}
