import { expect } from 'chai';
import { describe, it } from 'mocha';
import { quoteUnits, unitsCostAp } from '../../core/pricing.ts';
import { charactersOf, hasUnreadableTag, startedTenSeconds } from '../../core/speech.ts';

describe('what speech is paid by', () => {
  it('is code points, not bytes, UTF-16 units or what looks like one sign', () => {
    const counts = ['', 'abc', 'ä', 'a\u0308', '日本語', '🙂', '👩‍💻', '\r\n'].map(charactersOf);
    expect(counts).to.deep.equal([0, 3, 1, 2, 3, 1, 3, 2]);
  });

  it('is each started ten seconds of a recording, at least one', () => {
    const units = [1, 9_999, 10_000, 10_001, 20_000, 3_600_000].map(startedTenSeconds);
    expect(units).to.deep.equal([1, 1, 1, 2, 2, 360]);
  });

  it('is rounded up once, and held for all of it or not at all', () => {
    expect([1, 5, 6, 1000, 1001].map((characters) => unitsCostAp(200, characters))).to.deep.equal([
      1, 1, 2, 200, 201,
    ]);
    expect(quoteUnits(200, 7)).to.deep.equal({ fixedMilliAp: 0, unitMilliAp: 200, minUnits: 7, maxUnits: 7 });
  });
});

describe('an expression tag', () => {
  const isRefused = (text: string, model = 'tts_multilingual_v2') => hasUnreadableTag(model, text);

  it('is not for the model that would read it aloud, and for any other', () => {
    for (const text of ['[whispers] Hi', 'Hi [laughs softly]', 'a[SIGHS]b', '[don’t rush]'])
      expect(isRefused(text), text).to.equal(true);
    for (const model of ['tts_v3', 'another']) expect(isRefused('[whispers] Hi', model)).to.equal(false);
  });

  it('is words in brackets, and nothing else in brackets is', () => {
    for (const text of ['see [1]', '[]', '[ whispers]', '[笑]', 'a [b', '[x=1]', `[${'a'.repeat(65)}]`])
      expect(isRefused(text), text).to.equal(false);
  });
});
