/** Where files lie: a key follows from its row. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { v4, v7 } from 'uuid';
import { assetKey, extensionOf, requireKey } from '../../../core/assets/keys.ts';

describe('the key of a file', () => {
  it('is its kind, the day of its id, its id and the ending of its type', () => {
    const id = v7({ msecs: Date.parse('2026-02-28T23:59:59.999Z') });
    expect(assetKey({ id, kind: 'audio', contentType: 'audio/mpeg' })).to.equal(`audio/2026/02/28/${id}.mp3`);
  });

  it('is one that every store takes', () => {
    for (const kind of ['image', 'audio', 'video', 'input', 'partial', 'character', 'preview'] as const) {
      requireKey(assetKey({ id: v7(), kind, contentType: 'application/octet-stream' }));
    }
  });

  it('is refused where the id has no time, or is none', () => {
    for (const id of [v4(), v7().toUpperCase(), '../../etc/passwd', '']) {
      expect(() => assetKey({ id, kind: 'image', contentType: 'image/png' }), id).to.throw(/UUID version 7/);
    }
  });

  it('is refused for types that are not kept', () => {
    for (const type of ['text/html', 'image/svg+xml', 'constructor', '']) {
      expect(() => extensionOf(type), type).to.throw(/are kept/);
    }
  });
});
