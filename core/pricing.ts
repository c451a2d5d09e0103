/**
 * What things cost, in integers: prices are whole AP per unit, sums are kept in thousandths of an AP ("milli-AP"), and are
 * rounded up to whole AP once per request. The database rounds with the same formula (app.milli_ap_to_ap).
 */

/** A price row as the catalogue holds it; immutable, so a request that names its id has its price for good. */
export interface Price {
  readonly id: number;
  readonly unit:
    | 'per_1k_tokens'
    | 'per_1k_characters'
    | 'per_10_seconds'
    | 'per_image'
    | 'per_second'
    | 'per_call';
  readonly apInPer1k: number | null;
  readonly apOutPer1k: number | null;
  readonly ap: number | null;
  readonly size: string;
  readonly quality: string;
  readonly announcedAt: Date;
  readonly effectiveAt: Date;
}

/** What to hold: ceil((fixedMilliAp + units × unitMilliAp) / 1000) AP, for between minUnits and maxUnits units. */
export interface Quote {
  readonly fixedMilliAp: number;
  readonly unitMilliAp: number;
  readonly minUnits: number;
  readonly maxUnits: number;
}

export interface TokenPrice {
  readonly apInPer1k: number;
  readonly apOutPer1k: number;
}

/** Milli-AP to AP, rounded up; exact for safe integers. */
export function milliApToAp(milliAp: number): number {
  const sum = milliAp + 999;
  return (sum - (sum % 1000)) / 1000;
}

/**
 * The hold for a chat request: the prompt at most, and the output cap for each of `choices` choices.
 * A unit is one token of the cap, in every choice.
 */
export function quoteChat(
  price: TokenPrice,
  request: { promptTokens: number; outputCapTokens: number; choices: number; minimumOutputTokens: number },
): Quote {
  return {
    fixedMilliAp: request.promptTokens * price.apInPer1k,
    unitMilliAp: request.choices * price.apOutPer1k,
    minUnits: Math.min(request.minimumOutputTokens, request.outputCapTokens),
    maxUnits: request.outputCapTokens,
  };
}

/** AP for a finished chat request, from its token counts. */
export function chatCostAp(
  price: TokenPrice,
  usage: { promptTokens: number; completionTokens: number },
): number {
  return milliApToAp(usage.promptTokens * price.apInPer1k + usage.completionTokens * price.apOutPer1k);
}

/** The hold for an image request: as many pictures as are asked for, or none at all; a unit is one picture. */
export function quoteImages(priceAp: number, count: number): Quote {
  return quoteUnits(priceAp * 1000, count);
}

/** The hold for so many units at a price each, all of them or none; the cost is the same (`unitsCostAp`). */
export function quoteUnits(milliApPerUnit: number, units: number): Quote {
  return { fixedMilliAp: 0, unitMilliAp: milliApPerUnit, minUnits: units, maxUnits: units };
}

export function unitsCostAp(milliApPerUnit: number, units: number): number {
  return milliApToAp(milliApPerUnit * units);
}

/** The hold for an operation that is priced by the call. */
export function quoteCall(priceAp: number): Quote {
  return { fixedMilliAp: priceAp * 1000, unitMilliAp: 0, minUnits: 1, maxUnits: 1 };
}

/** The price in force at a moment among the prices of one model, size and quality. */
export function priceInForce(prices: readonly Price[], at: Date): Price | undefined {
  let found: Price | undefined;
  for (const price of prices) {
    if (price.effectiveAt <= at && (found === undefined || price.effectiveAt > found.effectiveAt))
      found = price;
  }
  return found;
}

/** The next announced price after a moment, if any. */
export function nextPrice(prices: readonly Price[], at: Date): Price | undefined {
  let found: Price | undefined;
  for (const price of prices) {
    if (price.effectiveAt > at && (found === undefined || price.effectiveAt < found.effectiveAt))
      found = price;
  }
  return found;
}
