/** Importing a catalogue file: what it writes, and what it leaves alone. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { importCatalogue } from '../../../core/catalogue-file/index.ts';
import { selectOne, selectRows, withDatabase, withRollback } from '../../helpers/database.ts';
import { contentOf, count, FULL, inDays, load, refusalOf, speech } from './catalogue-database.ts';

describe('importing a catalogue', () => {
  const database = withDatabase();

  describe('writes', () => {
    it('providers, models, routes, prices and voices, and counts them', async () => {
      await withRollback(database.pool, async (db) => {
        expect(await load(db, FULL)).to.deep.equal({
          providers: 2,
          models: 3,
          voices: 1,
          retired: [],
          priceChanges: [],
        });
        expect(
          await selectRows(db, 'select name, kind, base_url, credential_env from app.providers order by 1'),
        ).to.deep.equal([
          { name: 'sandbox', kind: 'sandbox', base_url: null, credential_env: null },
          { name: 'up', kind: 'openai', base_url: 'https://up.example/v1', credential_env: 'UP_KEY' },
        ]);
        expect(
          await selectRows(
            db,
            'select model_id, provider, upstream_model, priority, weight from app.routes order by 1, 4',
          ),
        ).to.deep.equal([
          { model_id: 'chat-large', provider: 'up', upstream_model: 'gpt: large', priority: 0, weight: 3 },
          {
            model_id: 'chat-large',
            provider: 'sandbox',
            upstream_model: 'sandbox-chat',
            priority: 1,
            weight: 1,
          },
          { model_id: 'image-main', provider: 'up', upstream_model: 'gpt-image', priority: 0, weight: 1 },
          { model_id: 'speech-main', provider: 'up', upstream_model: 'tts', priority: 0, weight: 1 },
        ]);
        expect(
          await selectRows(
            db,
            'select model_id, unit, ap_in_per_1k, ap_out_per_1k, ap, size, quality from app.prices order by model_id, ap',
          ),
        ).to.deep.equal([
          {
            model_id: 'chat-large',
            unit: 'per_1k_tokens',
            ap_in_per_1k: 25,
            ap_out_per_1k: 100,
            ap: null,
            size: '',
            quality: '',
          },
          {
            model_id: 'image-main',
            unit: 'per_image',
            ap_in_per_1k: null,
            ap_out_per_1k: null,
            ap: 120,
            size: '1024x1024',
            quality: 'low',
          },
          {
            model_id: 'image-main',
            unit: 'per_image',
            ap_in_per_1k: null,
            ap_out_per_1k: null,
            ap: 1900,
            size: '1024x1024',
            quality: 'high',
          },
          {
            model_id: 'speech-main',
            unit: 'per_1k_characters',
            ap_in_per_1k: null,
            ap_out_per_1k: null,
            ap: 200,
            size: '',
            quality: '',
          },
        ]);
        expect(await selectRows(db, 'select * from app.voices')).to.deep.equal([
          {
            slug: 'narrator',
            name: 'Narrator',
            tagline: 'calm, slow',
            provider: 'up',
            upstream_voice: 'alloy',
            model_id: 'speech-main',
          },
        ]);
      });
    });

    it('nothing the second time, and one audit entry in all', async () => {
      await withRollback(database.pool, async (db) => {
        await load(db, FULL);
        const before = [await contentOf(db), await count(db, 'prices'), await count(db, 'audit_log')];
        await load(db, FULL);
        expect([await contentOf(db), await count(db, 'prices'), await count(db, 'audit_log')]).to.deep.equal(
          before,
        );
        const audit = await selectRows<{ actor: string; before: unknown; after: unknown }>(
          db,
          `select actor, before, after from app.audit_log where action = 'import_catalogue'`,
        );
        expect(audit).to.deep.equal([
          { actor: 'tester', before: { providers: [], models: [], voices: [] }, after: before[0] },
        ]);
      });
    });

    it("replaces the routes and voices of the file's models and leaves other models alone", async () => {
      await withRollback(database.pool, async (db) => {
        await load(db, FULL);
        await load(db, speech('{ap: 200}'));
        expect(
          await selectRows(
            db,
            `select provider, upstream_model from app.routes where model_id = 'speech-main'`,
          ),
        ).to.deep.equal([{ provider: 'sandbox', upstream_model: 'u' }]);
        expect(await count(db, 'voices')).to.equal(0);
        expect(
          await selectOne(db, `select count(*) from app.routes where model_id = 'chat-large'`),
        ).to.deep.equal({ count: 2 });
        expect(await selectOne(db, 'select count(*) from app.models where retired_at is null')).to.deep.equal(
          { count: 3 },
        );
      });
    });

    it('references to what the database holds already', async () => {
      await withRollback(database.pool, async (db) => {
        await load(db, FULL);
        const voices = 'voices: [{slug: s, name: S, provider: up, upstream_voice: a, model: speech-main}]\n';
        expect(await load(db, voices)).to.deep.include({ providers: 0, models: 0, voices: 1 });
        expect(await count(db, 'voices')).to.equal(2);
        expect(await refusalOf(load(db, voices, true))).to.deep.equal([
          'c.yaml:1:69: there is no model "speech-main"; there is none at all',
        ]);
      });
    });

    it('retirement only when asked to prune, and takes it back when a file names the model again', async () => {
      await withRollback(database.pool, async (db) => {
        await load(db, FULL);
        expect((await load(db, speech('{ap: 200}'), true)).retired).to.deep.equal([
          'chat-large',
          'image-main',
        ]);
        expect(await selectRows(db, 'select id from app.models where retired_at is null')).to.deep.equal([
          { id: 'speech-main' },
        ]);
        expect((await load(db, speech('{ap: 200}'), true)).retired).to.deep.equal([]);
        await load(db, FULL);
        expect(await selectOne(db, 'select count(*) from app.models where retired_at is null')).to.deep.equal(
          { count: 3 },
        );
      });
    });

    it('one default of a type: that of the last file that names one', async () => {
      await withRollback(database.pool, async (db) => {
        const recommended = (): Promise<unknown> =>
          selectRows(db, 'select id from app.models where recommended order by id');
        await load(db, FULL);
        expect(await recommended()).to.deep.equal([{ id: 'speech-main' }]);

        const other = speech('{ap: 100}').replace('speech-main', 'a-speech');
        await load(db, other);
        expect(await recommended()).to.deep.equal([{ id: 'speech-main' }]);
        await load(db, other.replace('type: speech', 'type: speech\n    recommended: true'));
        expect(await recommended()).to.deep.equal([{ id: 'a-speech' }]);
        await load(db, FULL);
        expect(await recommended()).to.deep.equal([{ id: 'speech-main' }]);
      });
    });

    it('all or nothing', async () => {
      await withRollback(database.pool, async (db) => {
        await load(db, speech('{ap: 200}'));
        const before = await contentOf(db);
        await db.query('savepoint here');
        const text = FULL.replace('{ap: 200}', `{ap: 201, effective_at: "${inDays(6)}"}`);
        expect(await refusalOf(load(db, text))).to.have.lengthOf(1);
        await db.query('rollback to here');
        expect(await contentOf(db)).to.deep.equal(before);
      });
    });
  });

  it('refuses to change the type of a model', async () => {
    await withRollback(database.pool, async (db) => {
      await load(db, speech('{ap: 200}'));
      expect(
        await refusalOf(load(db, speech('{ap: 3}').replace('type: speech', 'type: gateway'))),
      ).to.deep.equal([
        'c.yaml:4:11: the type of model "speech-main" is speech and never changes; give the other model another id',
      ]);
    });
  });
});

describe('importing a catalogue is done', () => {
  const database = withDatabase();

  it('once when two import at the same time', async () => {
    const imports = [1, 2, 3].map(() => importCatalogue(database.pool, FULL, 'c.yaml', 'twin'));
    expect((await Promise.all(imports)).map(({ models }) => models)).to.deep.equal([3, 3, 3]);
    expect(
      await selectOne(
        database.pool,
        `select count(*) from app.audit_log where action = 'import_catalogue' and actor = 'twin'`,
      ),
    ).to.deep.equal({ count: 1 });
  });
});
