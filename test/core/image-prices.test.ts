/** Which row of an image model's price table a request means. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type { Model } from '../../core/catalogue.ts';
import { chooseImagePrice, imagePricesInForce } from '../../core/image-prices.ts';
import { type Price, quoteImages } from '../../core/pricing.ts';

const NOW = new Date('2026-11-20T00:00:00Z');
const BEFORE = new Date('2026-11-01T00:00:00Z');
const LATER = new Date('2026-12-01T00:00:00Z');

function rows(...table: readonly [size: string, quality: string, ap: number, effectiveAt?: Date][]): Price[] {
  const prices = table.map(
    ([size, quality, ap, effectiveAt = BEFORE], index): Price => ({
      id: index + 1,
      unit: 'per_image',
      apInPer1k: null,
      apOutPer1k: null,
      ap,
      size,
      quality,
      announcedAt: BEFORE,
      effectiveAt,
    }),
  );
  return imagePricesInForce({ prices } as unknown as Model, NOW);
}

function chosen(table: Price[], size?: string, quality?: string): string {
  const choice = chooseImagePrice(table, { size, quality });
  if ('price' in choice) return `${choice.price.size} ${choice.price.quality}`.trim();
  return `no ${choice.notPriced}, allowed: ${choice.allowed.join(' ')}`;
}

describe('image prices', () => {
  const usual = rows(
    ['1024x1024', 'high', 190],
    ['1024x1024', 'medium', 40],
    ['1024x1024', 'low', 12],
    ['512x512', 'low', 4],
    ['512x512', 'high', 9],
  );

  it('are those of the named size and quality', () => {
    expect(chosen(usual, '512x512', 'high')).to.equal('512x512 high');
  });

  it('default to 1024x1024 and medium, named or not', () => {
    expect(chosen(usual)).to.equal('1024x1024 medium');
    expect(chosen(usual, 'auto', 'auto')).to.equal('1024x1024 medium');
    expect(chosen(usual, undefined, 'low')).to.equal('1024x1024 low');
  });

  it('default to what costs least where the usual is not priced', () => {
    expect(chosen(usual, '512x512')).to.equal('512x512 low');
    expect(chosen(rows(['2048x2048', 'low', 9], ['64x64', 'high', 8], ['64x64', 'low', 2]))).to.equal(
      '64x64 low',
    );
  });

  it('say what is priced where the size, or its quality, is not', () => {
    expect(chosen(usual, '1x1')).to.equal('no size, allowed: 512x512 1024x1024');
    expect(chosen(usual, '512x512', 'medium')).to.equal('no quality, allowed: low high');
  });

  it('without a quality hold whatever the quality, and none may be named', () => {
    const plain = rows(['1024x1024', '', 30]);
    expect(chosen(plain)).to.equal('1024x1024');
    expect(chosen(plain, '1024x1024', 'auto')).to.equal('1024x1024');
    expect(chosen(plain, '1024x1024', 'high')).to.equal('no quality, allowed: ');
  });

  it('are the latest in force, not those still to come', () => {
    const changing = rows(['64x64', 'low', 5], ['64x64', 'low', 3, NOW], ['64x64', 'low', 50, LATER]);
    expect(changing.map((price) => price.ap)).to.deep.equal([3]);
    expect(rows(['64x64', 'low', 5, LATER])).to.deep.equal([]);
  });

  it('are held for every picture, or for none', () => {
    expect(quoteImages(40, 3)).to.deep.equal({
      fixedMilliAp: 0,
      unitMilliAp: 40_000,
      minUnits: 3,
      maxUnits: 3,
    });
  });
});
