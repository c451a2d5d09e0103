/** Characters over HTTP: registering, picking, using them in requests for pictures, removing. */
import { expect } from 'chai';
import { before, beforeEach, describe, it } from 'mocha';
import { assetKey } from '../../core/assets/keys.ts';
import { selectOne, selectRows } from '../helpers/database.ts';
import { makeGalleryPrice, makePictures } from '../helpers/gallery.ts';
import { IMAGE_MODEL, makeImageModel } from '../helpers/image-models.ts';
import { makeMask, makePng } from '../helpers/pictures.ts';
import { type TestCaller, withTestService } from '../helpers/service.ts';

const CHARACTERS = '/v1/images/characters';
const GENERATIONS = '/v1/images/generations';
const UPSTREAM_MODEL = 'image-upstream';

let serial = 0;
const bodyOf = (changes: object = {}): Record<string, unknown> => {
  serial += 1;
  return {
    slug: `fox-${serial}`,
    name: { ja: 'きつね', en: 'Fox' },
    prompt: 'A red fox with a green scarf.',
    ...changes,
  };
};
const base64 = (bytes: Buffer): string => bytes.toString('base64');

describe('characters', () => {
  const service = withTestService({ config: { ipDailyCap: 0 } });
  let caller: TestCaller;

  before('models', async () => {
    await makeImageModel(service, { id: IMAGE_MODEL, provider: 'sandbox' });
    await makeImageModel(service, { id: UPSTREAM_MODEL, provider: 'mock' });
    await makeGalleryPrice(service);
  });
  beforeEach(async () => {
    caller = await service.makeCaller({ ratePerMinute: 1000 });
    service.upstream.reset();
  });

  const register = (body: unknown, secret = caller.secret) => service.post(CHARACTERS, { secret, body });
  const assetsOf = (accountId: string) =>
    selectRows<{ id: string; state: string; expires_at: Date | null; sweep_at: Date | null }>(
      service.pool,
      `select id, state, expires_at, sweep_at from app.assets where account_id = $1 and kind = 'character'`,
      [accountId],
    );
  const generate = (body: object, secret = caller.secret) =>
    service.post(GENERATIONS, {
      secret,
      body: {
        model: IMAGE_MODEL,
        prompt: 'in the snow',
        size: '64x64',
        quality: 'low',
        response_format: 'url',
        ...body,
      },
    });

  describe('registering', () => {
    it('is free, and answers with the character', async () => {
      const body = bodyOf({ public: true, payee: { subject: 'user-7' }, royalty_bps: 250 });
      const { status, json, headers } = await register(body);
      expect(status).to.equal(200);
      expect(headers.has('x-svc-ap-cost')).to.equal(false);
      const { char_id: id, ...rest } = json;
      expect(id).to.match(/^[0-9a-f-]{36}$/);
      expect(rest).to.deep.equal({
        object: 'character',
        slug: body.slug,
        name: body.name,
        prompt: body.prompt,
        public: true,
        image_url: null,
        reference_sha256: null,
        payee: { subject: 'user-7' },
        royalty_bps: 250,
      });
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
    });

    it('keeps the picture for good, and shows it to everybody where the character is public', async () => {
      const picture = makePng(20, 10, { rgb: [200, 80, 0] });
      const { json } = await register(bodyOf({ public: true, reference_image: base64(picture) }));
      const [asset] = await assetsOf(caller.accountId);
      expect(asset).to.include({ state: 'stored', expires_at: null, sweep_at: null });
      for (const path of [json.image_url, `${service.urls[0]}${CHARACTERS}/${json.slug}/image`]) {
        const answer = await fetch(path);
        expect(answer.headers.get('cache-control')).to.match(/^public/);
        expect(Buffer.from(await answer.arrayBuffer()).equals(picture)).to.equal(true);
      }
    });

    it('takes one name for both languages', async () => {
      const { json } = await register(bodyOf({ name: { ja: 'たぬき' } }));
      expect(json.name).to.deep.equal({ ja: 'たぬき', en: 'たぬき' });
    });

    const REFUSED: readonly (readonly [string, object, string, string?])[] = [
      ['a slug with capitals', { slug: 'Fox' }, 'slug'],
      ['a slug that looks like an id', { slug: '01900000-0000-7000-8000-000000000000' }, 'slug'],
      ['a slug that is too long', { slug: 'x'.repeat(65) }, 'slug'],
      ['a slug that begins with a hyphen', { slug: '-fox' }, 'slug'],
      ['no name', { name: {} }, 'name'],
      ['a name of blanks', { name: { en: '  ' } }, 'name.en'],
      ['a name with a NUL', { name: { en: 'a\u0000b' } }, 'name.en'],
      ['an empty prompt', { prompt: ' \n' }, 'prompt'],
      ['a prompt that is too long', { prompt: 'x'.repeat(4001) }, 'prompt'],
      ['half of a character in the prompt', { prompt: 'a\ud800' }, 'prompt'],
      ['a share without a payee', { royalty_bps: 1 }, 'payee'],
      ['a share above all', { royalty_bps: 10_001, payee: { subject: 'x' } }, 'royalty_bps'],
      [
        'two payees',
        { payee: { subject: 'x', account_id: '01900000-0000-7000-8000-000000000000' } },
        'payee',
      ],
      [
        'a payee that there is not',
        { payee: { account_id: '01900000-0000-7000-8000-000000000000' } },
        'payee.account_id',
      ],
      ['a field that is unknown', { colour: 'red' }, 'colour', 'unsupported_parameter'],
      [
        'a picture that is none',
        { reference_image: base64(Buffer.from('GIF89a')) },
        'reference_image',
        'unsupported_format',
      ],
      [
        'a picture cut short',
        { reference_image: base64(makePng(64, 64).subarray(0, 90)) },
        'reference_image',
      ],
      ['what is no base64', { reference_image: '!' }, 'reference_image'],
    ];
    for (const [what, changes, param, code = 'invalid_parameter'] of REFUSED) {
      it(`refuses ${what}, and leaves nothing`, async () => {
        const before = await service.traces();
        const { status, json } = await register(bodyOf(changes));
        expect(status, JSON.stringify(json)).to.equal(400);
        expect(json.error.code).to.equal(code);
        expect(json.param).to.equal(param);
        expect(await service.traces()).to.deep.equal(before);
      });
    }

    it('refuses a slug that is taken, also by a removed one, and leaves no picture', async () => {
      const { json } = await register(bodyOf());
      const body = bodyOf({ slug: json.slug, reference_image: base64(makePng(8, 8)) });
      const other = await service.makeCaller();
      for (const remove of [false, true]) {
        if (remove) await service.call('DELETE', `${CHARACTERS}/${json.char_id}`, { secret: caller.secret });
        const { status, json: refusal } = await register(body, other.secret);
        expect(status).to.equal(400);
        expect(refusal).to.include({ param: 'slug', reason: 'taken' });
        expect(await assetsOf(other.accountId)).to.deep.equal([]);
      }
    });

    it('by many at once gives a slug to one of them', async () => {
      const body = bodyOf();
      const answers = await Promise.all(Array.from({ length: 10 }, () => register(body)));
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    });

    it('is limited to so many an account, also at once', async () => {
      await service.pool.query(
        `insert into app.characters (id, account_id, slug, name_ja, name_en, prompt)
           select gen_random_uuid(), $1, 'many-' || n, 'x', 'x', 'x' from generate_series(1, 98) n`,
        [caller.accountId],
      );
      const answers = await Promise.all(Array.from({ length: 6 }, () => register(bodyOf())));
      expect(answers.filter(({ status }) => status === 200)).to.have.length(2);
      const refused = answers.find(({ status }) => status !== 200);
      expect(refused?.json).to.include({ param: 'slug', reason: 'too_many_characters', maximum: 100 });
      await service.pool.query(`delete from app.characters where slug like 'many-%'`);
    });

    it('is limited to so many a day, those that were removed again included', async () => {
      await service.pool.query(
        `insert into app.characters (id, account_id, slug, name_ja, name_en, prompt, removed_at)
           select overlay(gen_random_uuid()::text placing left(app.uuid_floor(now() - interval '1 hour' * (n / 4))::text, 13) from 1)::uuid,
               $1, 'burnt-' || n, 'x', 'x', 'x', now()
             from generate_series(1, 100) n`,
        [caller.accountId],
      );
      const registered: string[] = [];
      for (;;) {
        const { status, json } = await register(bodyOf());
        if (status !== 200) {
          expect(json).to.include({ param: 'slug', reason: 'too_many_characters_a_day', maximum: 100 });
          break;
        }
        registered.push(json.char_id);
        await service.call('DELETE', `${CHARACTERS}/${json.char_id}`, { secret: caller.secret });
      }
      // a day ago is that of the 96th
      expect(registered.length).to.be.within(4, 6);
      await service.pool.query(`delete from app.characters where slug like 'burnt-%'`);
    });
  });

  describe('the picker', () => {
    it('has the public ones, newest first, paged, without their prompts and payees', async () => {
      const first = (await register(bodyOf({ public: true }))).json;
      const second = (
        await register(
          bodyOf({ public: true, reference_image: base64(makePng(8, 8)), payee: { subject: 'secret' } }),
        )
      ).json;
      await register(bodyOf());
      const { json, headers } = await service.get(`${CHARACTERS}?limit=2`);
      expect(headers.get('cache-control')).to.match(/^public, max-age=\d+$/);
      expect(json.items).to.deep.equal([
        { char_id: second.char_id, slug: second.slug, name: second.name, image_url: second.image_url },
        { char_id: first.char_id, slug: first.slug, name: first.name, image_url: null },
      ]);
      expect(json).to.include({ limit: 2, offset: 0 });
      const next = (await service.get(`${CHARACTERS}?limit=1&offset=1`)).json;
      expect(next.items[0].char_id).to.equal(first.char_id);
      expect(next.total).to.equal(json.total);
      const { total } = await selectOne<{ total: number }>(
        service.pool,
        'select count(*) as total from app.characters where is_public and removed_at is null',
      );
      expect(json.total).to.equal(total);
      const again = await service.get(`${CHARACTERS}?limit=2`, {
        headers: { 'if-none-match': headers.get('etag') ?? '' },
      });
      expect(again.status).to.equal(304);
    });
  });

  describe('in a request', () => {
    it('adds its prompt and picture, and is noted with the picture and the usage', async () => {
      const picture = makePng(12, 12, { rgb: [10, 200, 30] });
      const character = (await register(bodyOf({ reference_image: base64(picture) }))).json;
      const { json } = await generate({ model: UPSTREAM_MODEL, character: character.slug, cache: false });
      const call = service.upstream.calls.at(-1);
      expect(call?.path).to.match(/images\/edits$/);
      // forms end their lines with both
      expect(String(call?.body.prompt).replaceAll('\r\n', '\n')).to.equal(
        `${character.prompt}\n\nin the snow`,
      );
      expect(call?.files.map(({ bytes }) => bytes.equals(picture))).to.deep.equal([true]);
      const { usage } = await selectOne<{ usage: { character_id: string } }>(
        service.pool,
        'select usage from app.requests where id = $1',
        [json.id],
      );
      expect(usage.character_id).to.equal(character.char_id);
      const { details } = await selectOne<{ details: { characterId: string } }>(
        service.pool,
        `select details from app.assets where request_id = $1 and kind = 'image'`,
        [json.id],
      );
      expect(details.characterId).to.equal(character.char_id);
    });

    it('is part of the cache’s question', async () => {
      const one = (await register(bodyOf())).json;
      const other = (await register(bodyOf())).json;
      const prompt = `cached ${one.slug}`;
      const first = (await generate({ prompt, character: one.slug })).json;
      expect((await generate({ prompt, character: one.char_id })).json).to.include({
        id: first.id,
        cached: true,
      });
      expect((await generate({ prompt, character: other.slug })).json.cached).to.equal(false);
      expect((await generate({ prompt })).json.cached).to.equal(false);
    });

    it('goes with an edit’s pictures and mask', async () => {
      const character = (await register(bodyOf({ reference_image: base64(makePng(12, 12)) }))).json;
      const answer = await service.post('/v1/images/edits', {
        secret: caller.secret,
        body: {
          model: IMAGE_MODEL,
          prompt: 'add a hat',
          size: '64x64',
          quality: 'low',
          image: base64(makePng(16, 16)),
          mask: base64(makeMask(16, 16, { left: 2, top: 2, width: 4, height: 4 })),
          character: character.slug,
        },
      });
      expect(answer.status).to.equal(200);
    });

    it('that is another’s may be used where it is public, and is unknown where it is not', async () => {
      const shown = (await register(bodyOf({ public: true }))).json;
      const hidden = (await register(bodyOf())).json;
      const { secret } = await service.makeCaller();
      expect((await generate({ character: shown.slug }, secret)).status).to.equal(200);
      for (const name of [hidden.slug, hidden.char_id, 'nobody', 'a\u0000b']) {
        const { status, json } = await generate({ character: name }, secret);
        expect(status).to.equal(400);
        expect(json.error.code).to.equal('unknown_character');
        expect(json.param).to.equal('character');
      }
      expect((await generate({ character: hidden.char_id })).status).to.equal(200);
    });

    it('counts in what a prompt and the pictures may be', async () => {
      const character = (await register(bodyOf({ reference_image: base64(makePng(8, 8)) }))).json;
      const long = await generate({ prompt: 'x'.repeat(31_990), character: character.slug });
      expect(long.json).to.include({ param: 'prompt', maximum: 32_000 - character.prompt.length - 2 });
      const many = await service.post('/v1/images/edits', {
        secret: caller.secret,
        body: {
          model: IMAGE_MODEL,
          prompt: 'x',
          reference_images: Array(16).fill(base64(makePng(4, 4))),
          character: character.slug,
        },
      });
      expect(many.json).to.include({ param: 'image', maximum: 15 });
    });
  });

  describe('in the gallery', () => {
    it('is named where it is public, and its pictures are a page of their own', async () => {
      const character = (await register(bodyOf({ public: true }))).json;
      const made = await makePictures(service, caller.secret, { character: character.slug });
      const plain = await makePictures(service, caller.secret);
      for (const { id } of [made, plain])
        await service.post(`/v1/images/${id}/publish`, { secret: caller.secret });
      for (const name of [character.slug, character.char_id]) {
        const { json } = await service.get(`/v1/images/gallery?character=${name}`);
        expect(json.total).to.equal(1);
        expect(json.items[0]).to.deep.include({
          id: made.id,
          character: { char_id: character.char_id, slug: character.slug, name: character.name },
        });
      }
    });

    it('is not named where it is nobody else’s, or removed', async () => {
      const hidden = (await register(bodyOf())).json;
      const made = await makePictures(service, caller.secret, { character: hidden.slug });
      const { json } = await service.post(`/v1/images/${made.id}/publish`, { secret: caller.secret });
      expect(json.character).to.equal(null);
      expect((await service.get(`/v1/images/license/${json.license_token}`)).json.character).to.equal(null);
      expect((await service.get('/v1/images/gallery')).json.items[0].character).to.equal(null);
    });
  });

  describe('removing', () => {
    it('ends its use at once, and its picture in a few minutes', async () => {
      const character = (await register(bodyOf({ public: true, reference_image: base64(makePng(9, 9)) })))
        .json;
      const { secret } = caller;
      const answer = await service.call('DELETE', `${CHARACTERS}/${character.char_id}`, { secret });
      expect(answer.json).to.deep.equal({
        char_id: character.char_id,
        object: 'character.deleted',
        deleted: true,
      });
      expect((await generate({ character: character.slug })).json.error.code).to.equal('unknown_character');
      expect((await fetch(character.image_url)).status).to.equal(404);
      expect(
        (await service.call('DELETE', `${CHARACTERS}/${character.char_id}`, { secret })).status,
      ).to.equal(404);
      const [asset] = await assetsOf(caller.accountId);
      expect((asset?.sweep_at?.getTime() ?? 0) - Date.now()).to.be.within(290_000, 300_000);
      const bytes = await service.store.read(
        assetKey({ id: asset?.id ?? '', kind: 'character', contentType: 'image/png' }),
        { maxBytes: 1e6 },
      );
      expect(bytes.length).to.be.above(0);
    });

    it('is its owner’s alone', async () => {
      const character = (await register(bodyOf({ public: true }))).json;
      const { secret } = await service.makeCaller();
      const answer = await service.call('DELETE', `${CHARACTERS}/${character.char_id}`, { secret });
      expect(answer.status).to.equal(404);
      expect((await generate({ character: character.slug })).status).to.equal(200);
    });
  });
});
