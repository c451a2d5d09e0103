/**
 * Which row of an image model's price table a request means: by size and quality, and what stands for those that are not
 * named (docs/decisions/0016-image-requests.md). Whether a refusal is an error is the caller's to say.
 */
import type { Model } from './catalogue.ts';
import { type Price, priceInForce } from './pricing.ts';

/** Taken where a request names none and the table has it; else what costs least. */
const USUAL_SIZE = '1024x1024';
const USUAL_QUALITY = 'medium';

export type ImagePriceChoice =
  | { readonly price: Price }
  /** No row: what is missing, and the values that have one. */
  | { readonly notPriced: 'size' | 'quality'; readonly allowed: readonly string[] };

/** The rows in force at a moment, the cheapest first. */
export function imagePricesInForce(model: Model, at: Date): Price[] {
  const rows = Map.groupBy(
    model.prices.filter((price) => price.unit === 'per_image' && price.size !== ''),
    (price) => `${price.size} ${price.quality}`,
  );
  return [...rows.values()]
    .flatMap((prices) => priceInForce(prices, at) ?? [])
    .toSorted((a, b) => (a.ap ?? 0) - (b.ap ?? 0) || (a.size < b.size ? -1 : 1));
}

/** Undefined and `auto`: the service chooses. A quality is only looked for among those of the size. */
export function chooseImagePrice(
  rows: readonly Price[],
  wanted: { readonly size: string | undefined; readonly quality: string | undefined },
): ImagePriceChoice {
  const sizes = [...new Set(rows.map((row) => row.size))];
  const size = chosen(wanted.size, sizes, USUAL_SIZE);
  if (size === undefined) return { notPriced: 'size', allowed: sizes };
  const ofSize = rows.filter((row) => row.size === size);
  const qualities = ofSize.map((row) => row.quality);
  const quality = chosen(wanted.quality, qualities, USUAL_QUALITY);
  const price = ofSize.find((row) => row.quality === quality);
  // a row without a quality is the price whatever the quality, and allows none to be named
  if (price === undefined) return { notPriced: 'quality', allowed: qualities.filter((word) => word !== '') };
  return { price };
}

function chosen(wanted: string | undefined, priced: readonly string[], usual: string): string | undefined {
  if (wanted === undefined || wanted === 'auto') return priced.includes(usual) ? usual : priced[0];
  return priced.includes(wanted) ? wanted : undefined;
}
