/** Exporting: the file imports again to the very same catalogue, whatever is in it. */
import { expect } from 'chai';
import fc from 'fast-check';
import { describe, it } from 'mocha';
import { stringify } from 'yaml';
import { exportCatalogue } from '../../../core/catalogue-file/index.ts';
import { withDatabase, withRollback } from '../../helpers/database.ts';
import { contentOf, count, FULL, letDaysPass, load, speech } from './catalogue-database.ts';

/** Any catalogue that is right: awkward names and texts, every type, prices with and without dates. */
const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,12}$/);
const text = (minLength: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constantFrom(
      'yes',
      'null',
      '1e3',
      '~',
      '- a',
      '# not a comment',
      'a: b',
      "it's",
      '"',
      '{',
      '日本 語',
      '0x10',
      ' ',
    ),
    fc
      .string({ unit: 'grapheme', minLength, maxLength: 20 })
      .filter((value) => /^[^\p{Cc}\p{Cs}]*$/u.test(value)),
  );
const ap = fc.integer({ min: 0, max: 100_000_000 });
const time = fc
  .integer({ min: Date.parse('2090-01-01'), max: Date.parse('2099-01-01') })
  .map((milliseconds) => new Date(milliseconds).toISOString());
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });

function priceList(
  amounts: fc.Arbitrary<object>,
  which: fc.Arbitrary<object> = fc.constant({}),
): fc.Arbitrary<object[]> {
  return fc
    .uniqueArray(fc.tuple(which, maybe(time), amounts), {
      minLength: 1,
      maxLength: 4,
      selector: ([where, when]) => JSON.stringify([where, when]),
    })
    .map((rows) =>
      rows.map(([where, when, amount]) => ({
        ...where,
        ...amount,
        ...(when === undefined ? {} : { effective_at: when }),
      })),
    );
}

const size = fc.constantFrom('256x256', '1024x1024', '1x99999');
const unitPrice = fc.record({ ap });
const pricing: Readonly<Record<string, fc.Arbitrary<object[]>>> = {
  chat: priceList(fc.record({ ap_in_per_1k: ap, ap_out_per_1k: ap })),
  speech: priceList(unitPrice),
  transcription: priceList(unitPrice),
  image: priceList(unitPrice, fc.record({ size, quality: fc.constantFrom('low', 'high', 'hd-2') })),
  video: priceList(unitPrice, fc.record({ size }, { requiredKeys: [] })),
  gateway: priceList(unitPrice),
};

const catalogue = fc
  .record({
    providers: fc.uniqueArray(
      fc.record({
        name,
        kind: fc.constantFrom('openai', 'elevenlabs', 'x', 'sandbox'),
        base_url: fc.webUrl(),
        credential_env: maybe(fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,8}$/)),
      }),
      { minLength: 1, maxLength: 3, selector: (provider) => provider.name },
    ),
    ids: fc.uniqueArray(name, { minLength: 1, maxLength: 5 }),
    slugs: fc.uniqueArray(name, { maxLength: 3 }),
  })
  .chain(({ providers, ids, slugs }) => {
    const provider = fc.constantFrom(...providers.map((each) => each.name));
    const model = (
      id: string,
    ): fc.Arbitrary<{ id: string; type: string; recommended?: boolean | undefined }> =>
      fc.constantFrom(...Object.keys(pricing)).chain((type) =>
        fc.record({
          id: fc.constant(id),
          type: fc.constant(type),
          ...(type === 'chat'
            ? {
                max_tokens: fc.integer({ min: 1, max: 1000 }),
                context_tokens: fc.integer({ min: 1000, max: 10_000_000 }),
              }
            : {}),
          recommended: maybe(fc.boolean()),
          routes: fc.uniqueArray(
            fc.record({
              provider,
              upstream_model: text(1),
              priority: maybe(fc.nat(3)),
              weight: maybe(fc.integer({ min: 1, max: 9 })),
            }),
            { minLength: 1, maxLength: 3, selector: (route) => `${route.provider} ${route.upstream_model}` },
          ),
          pricing: pricing[type] ?? fc.constant([]),
        }),
      );
    return fc.tuple(...ids.map(model)).chain((models) => {
      const speaking = models.filter(({ type }) => type === 'speech').map(({ id }) => id);
      const voice = (slug: string): fc.Arbitrary<object> =>
        fc.record({
          slug: fc.constant(slug),
          name: text(1),
          tagline: maybe(text(0)),
          provider,
          upstream_voice: text(1),
          model: fc.constantFrom(...speaking),
        });
      const voices = speaking.length === 0 ? [] : slugs.map(voice);
      const isDefault = ({ type, id }: { type: string; id: string }): boolean =>
        models.find((other) => other.type === type && other.recommended)?.id === id;
      const offered = models.map((one) => ({ ...one, recommended: one.recommended && isDefault(one) }));
      return fc.tuple(...voices).map((spoken) => ({ providers, models: offered, voices: spoken }));
    });
  });

describe('what was exported imports again to the same', () => {
  const database = withDatabase();

  /** Each transaction is rolled back: the second import begins with nothing, as in another database. */
  const roundTrip = async (text: string): Promise<void> => {
    const { first, again } = await withRollback(database.pool, async (db) => {
      await load(db, text);
      const exported = await exportCatalogue(db);
      const content = await contentOf(db);
      const prices = await count(db, 'prices');
      await load(db, exported.yaml, true);
      expect(await count(db, 'prices')).to.equal(prices);
      return { first: { yaml: exported.yaml, content }, again: await contentOf(db) };
    });
    expect(again).to.deep.equal(first.content);
    await withRollback(database.pool, async (db) => {
      await load(db, first.yaml);
      expect(await exportCatalogue(db)).to.have.property('yaml', first.yaml);
      expect(await contentOf(db)).to.deep.equal(first.content);
    });
  };

  it('with everything a catalogue can have', async () => {
    await roundTrip(FULL);
  });

  it('with what the service itself does, which has no routes', async () => {
    const text = 'models: [{id: gallery-submit, type: gateway, pricing: {ap: 7}}]';
    await roundTrip(text);
    const { yaml } = await withRollback(database.pool, async (db) => {
      await load(db, text);
      return await exportCatalogue(db);
    });
    expect(yaml).to.not.include('routes');
  });

  it('with announced price changes', async () => {
    await roundTrip(
      speech(
        '[{ap: 200}, {ap: 300, effective_at: 2100-01-01}, {ap: 250, effective_at: "2100-06-01T12:30:00.5Z"}]',
      ),
    );
  });

  it('with an announced increase that is nearer than seven days by now, in the same database', async () => {
    await withRollback(database.pool, async (db) => {
      await load(db, speech('{ap: 200}'));
      await letDaysPass(db, 30);
      await load(db, speech('{ap: 300}'));
      await letDaysPass(db, 4);
      const { yaml } = await exportCatalogue(db);
      const before = [await contentOf(db), await count(db, 'prices')];
      await load(db, yaml, true);
      expect([await contentOf(db), await count(db, 'prices')]).to.deep.equal(before);
    });
  });

  it('with one default of a type, where the database is from before there could be no more', async () => {
    await withRollback(database.pool, async (db) => {
      await load(db, FULL);
      await load(db, speech('{ap: 200}').replace('speech-main', 'a-speech'));
      await db.query(`update app.models set recommended = true where type = 'speech'`);
      const { yaml } = await exportCatalogue(db);
      expect(yaml.match(/recommended: true/g)).to.have.lengthOf(1);
      await load(db, yaml);
      expect((await exportCatalogue(db)).yaml).to.equal(yaml);
    });
  });

  it('without the models that are retired', async () => {
    await withRollback(database.pool, async (db) => {
      await load(db, FULL);
      await load(db, speech('{ap: 200}'), true);
      const { yaml, ...counts } = await exportCatalogue(db);
      expect(counts).to.deep.include({ models: 1, voices: 0 });
      expect(yaml).not.to.include('chat-large');
    });
  });

  it('whatever the catalogue', async () => {
    await fc.assert(
      fc.asyncProperty(catalogue, async (content) => {
        await roundTrip(stringify(content));
      }),
      { numRuns: 40 },
    );
  });
});
