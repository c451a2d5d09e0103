/** Prices and quotes: integers throughout, rounded up once, and the same in TypeScript as in the database. */
import { expect } from 'chai';
import fc from 'fast-check';
import { describe, it } from 'mocha';
import {
  chatCostAp,
  milliApToAp,
  nextPrice,
  type Price,
  priceInForce,
  quoteChat,
} from '../../core/pricing.ts';
import { selectOne, withDatabase } from '../helpers/database.ts';

describe('pricing', () => {
  const database = withDatabase();

  it('rounds thousandths up to whole AP', () => {
    for (const [milliAp, ap] of [
      [0, 0],
      [1, 1],
      [999, 1],
      [1000, 1],
      [1001, 2],
      [2_000_000, 2000],
    ] as const) {
      expect(milliApToAp(milliAp)).to.equal(ap);
    }
  });

  it('rounds as the database does, up to a billion AP', async () => {
    const amounts = fc.sample(fc.integer({ min: 0, max: 1_000_000_000_000 }), 300);
    const { ap } = await selectOne<{ ap: number[] }>(
      database.pool,
      'select json_agg(app.milli_ap_to_ap(m) order by n) as ap from unnest($1::bigint[]) with ordinality t(m, n)',
      [amounts],
    );
    expect(amounts.map(milliApToAp)).to.deep.equal(ap);
  });

  it('costs ceil((prompt × in + completion × out) / 1000), and never more than its quote within the cap', () => {
    const token = fc.integer({ min: 0, max: 1_000_000 });
    const price = fc.integer({ min: 0, max: 10_000 });
    const rates = fc.record({ apInPer1k: price, apOutPer1k: price });
    fc.assert(
      fc.property(
        rates,
        token,
        token,
        fc.integer({ min: 1, max: 128 }),
        (rate, promptTokens, outputCapTokens, choices) => {
          const costAp = chatCostAp(rate, { promptTokens, completionTokens: outputCapTokens * choices });
          const exact =
            (BigInt(promptTokens) * BigInt(rate.apInPer1k) +
              BigInt(outputCapTokens * choices) * BigInt(rate.apOutPer1k) +
              999n) /
            1000n;
          expect(BigInt(costAp)).to.equal(exact);
          const quote = quoteChat(rate, { promptTokens, outputCapTokens, choices, minimumOutputTokens: 16 });
          expect(milliApToAp(quote.fixedMilliAp + quote.maxUnits * quote.unitMilliAp)).to.equal(costAp);
          expect(quote.minUnits).to.equal(Math.min(16, outputCapTokens));
        },
      ),
    );
  });

  it('finds the price in force and the next one, whatever their order', () => {
    const at = (day: number) => new Date(Date.UTC(2026, 0, day));
    const price = (id: number, day: number): Price => ({
      id,
      unit: 'per_1k_tokens',
      apInPer1k: id,
      apOutPer1k: id,
      ap: null,
      size: '',
      quality: '',
      announcedAt: at(1),
      effectiveAt: at(day),
    });
    const prices = [price(3, 20), price(1, 1), price(4, 30), price(2, 10)];
    const idsAt = (day: number) => [priceInForce(prices, at(day))?.id, nextPrice(prices, at(day))?.id];
    expect(idsAt(0)).to.deep.equal([undefined, 1]);
    expect(idsAt(9)).to.deep.equal([1, 2]);
    expect(idsAt(10)).to.deep.equal([2, 3]);
    expect(idsAt(29)).to.deep.equal([3, 4]);
    expect(idsAt(31)).to.deep.equal([4, undefined]);
  });
});
