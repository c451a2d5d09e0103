/**
 * The life of a file's row: begun before the file, stored by the settlement that charges for it, swept when it is over, and told
 * of for good where it was ever shown.
 */
import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type pg from 'pg';
import { v7 } from 'uuid';
import {
  makeAccount,
  makeSubmission,
  type Queryable,
  type Settlement,
  type SettleOutcome,
  selectOne,
  selectRows,
  settle,
  submit,
  withDatabase,
  withRollback,
} from '../helpers/database.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
const CACHE_KEY = hash('prompt, model, size');

interface AssetRow {
  readonly id: string;
  readonly state: string;
  readonly bytes: number | null;
  readonly details: Readonly<Record<string, unknown>>;
  readonly expires_at: Date | null;
  readonly deleted_at: Date | null;
  readonly purged_at: Date | null;
  readonly sweep_at: Date | null;
}

interface Begun {
  readonly id: string;
  readonly accountId: string;
  readonly requestId: string;
}

async function openRequest(db: Queryable, accountId?: string): Promise<Omit<Begun, 'id'>> {
  const owner = accountId ?? (await makeAccount(db, { grantedAp: 1000 }));
  const submission = makeSubmission(owner);
  await submit(db, [submission]);
  return { accountId: owner, requestId: submission.id };
}

async function begin(
  db: Queryable,
  request: Omit<Begun, 'id'>,
  changes: { readonly kind?: string; readonly position?: number; readonly request_id?: string | null } = {},
): Promise<Begun> {
  const id = v7();
  const row = {
    id,
    account_id: request.accountId,
    request_id: request.requestId,
    kind: 'image',
    position: 0,
    content_type: 'image/png',
    details: { width: 64 },
    ...changes,
  };
  await db.query('select app.begin_assets($1)', [JSON.stringify([row])]);
  return { ...request, id };
}

const fileOf = ({ id }: Pick<Begun, 'id'>, changes: object = {}) => ({
  id,
  bytes: 5,
  sha256: hash(id),
  details: { height: 32 },
  retention_days: 30,
  ...changes,
});

async function post(
  db: Queryable,
  asset: Pick<Begun, 'requestId'>,
  files: readonly object[],
  changes: Partial<Settlement> = {},
): Promise<SettleOutcome[]> {
  return await settle(db, [
    { request_id: asset.requestId, state: 'succeeded', cost_ap: 7, assets: files, ...changes },
  ]);
}

const rowOf = (db: Queryable, { id }: Pick<Begun, 'id'>): Promise<AssetRow | undefined> =>
  selectRows<AssetRow & pg.QueryResultRow>(db, 'select * from app.assets where id = $1', [id]).then(
    ([row]) => row,
  );

/** Lets the time come at which housekeeping looks at these, or at all. */
const letTimePass = (db: Queryable, interval = '2 hours') =>
  db.query(
    `update app.assets set sweep_at = sweep_at - $1::interval, expires_at = expires_at - $1::interval,
       created_at = created_at - $1::interval`,
    [interval],
  );

/** Ids that are over, in their order. */
async function due(db: Queryable, limit = 100): Promise<string[]> {
  const rows = await selectRows<{ id: string; is_over: boolean }>(db, 'select * from app.due_assets($1)', [
    limit,
  ]);
  return rows
    .filter((row) => row.is_over)
    .map((row) => row.id)
    .sort();
}

const purge = (db: Queryable, ids: readonly string[]) => db.query('select app.purge_assets($1)', [ids]);

const isAbout = (at: Date | null | undefined, ms: number): boolean =>
  at instanceof Date && Math.abs(at.getTime() - Date.now() - ms) < 60_000;

describe('a file’s row', () => {
  const database = withDatabase();
  const alone = (work: (db: pg.PoolClient) => Promise<void>) => async () =>
    await withRollback(database.pool, work);

  it(
    'is written first, and stored with the charge: then its bytes, its hash and its end are known',
    alone(async (db) => {
      const asset = await begin(db, await openRequest(db));
      const begun = await rowOf(db, asset);
      expect(begun).to.include({ state: 'writing', bytes: null, expires_at: null });
      expect(isAbout(begun?.sweep_at, DAY_MS / 24)).to.equal(true);

      expect(await post(db, asset, [fileOf(asset)])).to.deep.equal([
        { request_id: asset.requestId, is_settled: true, state: 'succeeded', cost_ap: 7 },
      ]);
      const stored = await rowOf(db, asset);
      expect(stored).to.deep.include({ state: 'stored', bytes: 5, details: { width: 64, height: 32 } });
      expect(isAbout(stored?.expires_at, 30 * DAY_MS)).to.equal(true);
      expect(stored?.sweep_at).to.deep.equal(stored?.expires_at);
    }),
  );

  it(
    'is stored for a cancelled stream too, which was charged for it',
    alone(async (db) => {
      const asset = await begin(db, await openRequest(db));
      await post(db, asset, [fileOf(asset)], { state: 'cancelled' });
      expect((await rowOf(db, asset))?.state).to.equal('stored');
    }),
  );

  it(
    'is not stored by a settlement that comes second',
    alone(async (db) => {
      const request = await openRequest(db);
      const [first, second] = [await begin(db, request), await begin(db, request)];
      await post(db, request, [fileOf(first)]);
      const [again] = await post(db, request, [fileOf(second)], { cache_key: CACHE_KEY });
      expect(again?.is_settled).to.equal(false);
      expect((await rowOf(db, second))?.state).to.equal('writing');
      expect(await selectRows(db, 'select * from app.result_cache')).to.deep.equal([]);
    }),
  );

  it(
    'is not stored for a request that failed',
    alone(async (db) => {
      const asset = await begin(db, await openRequest(db));
      await post(db, asset, [fileOf(asset)], {
        state: 'failed',
        cost_ap: 0,
        error_code: 'generation_failed',
      });
      expect((await rowOf(db, asset))?.state).to.equal('writing');
    }),
  );

  it(
    'settles in one batch with requests that have none',
    alone(async (db) => {
      const asset = await begin(db, await openRequest(db));
      const plain = await openRequest(db, asset.accountId);
      const rows = await settle(db, [
        { request_id: plain.requestId, state: 'succeeded', cost_ap: 1, result: '{}', result_kind: 'json' },
        { request_id: asset.requestId, state: 'succeeded', cost_ap: 2, assets: [fileOf(asset)] },
      ]);
      expect(rows.map((row) => row.is_settled)).to.deep.equal([true, true]);
      expect((await rowOf(db, asset))?.state).to.equal('stored');
    }),
  );

  it(
    'of no request is stored by itself, and kept until it is deleted',
    alone(async (db) => {
      const request = await openRequest(db);
      const character = await begin(db, request, { kind: 'character', request_id: null });
      const image = await begin(db, request);
      const files = [character, image].map((asset) => fileOf(asset, { retention_days: null }));
      const rows = await selectRows(db, 'select * from app.store_assets($1)', [JSON.stringify(files)]);
      expect(rows).to.deep.equal([{ store_assets: character.id }]);
      expect(await rowOf(db, character)).to.include({ state: 'stored', expires_at: null, sweep_at: null });
      expect((await rowOf(db, image))?.state).to.equal('writing');
    }),
  );

  describe('in the cache of results', () => {
    it(
      'answers the same question until its files expire',
      alone(async (db) => {
        const request = await openRequest(db);
        const assets = [await begin(db, request), await begin(db, request, { position: 1 })];
        const files = assets.map((asset, index) => fileOf(asset, { retention_days: 30 - index }));
        await post(db, request, files, { cache_key: CACHE_KEY });
        const row = await selectOne<{ account_id: string; request_id: string; expires_at: Date }>(
          db,
          `select account_id, request_id, expires_at from app.result_cache where cache_key = decode($1, 'hex')`,
          [CACHE_KEY],
        );
        expect(row).to.include({ account_id: request.accountId, request_id: request.requestId });
        expect(isAbout(row.expires_at, 29 * DAY_MS)).to.equal(true);
      }),
    );

    it(
      'is replaced by a later answer, also within one batch',
      alone(async (db) => {
        const first = await begin(db, await openRequest(db));
        const second = await begin(db, await openRequest(db, first.accountId));
        const third = await begin(db, await openRequest(db, first.accountId));
        await settle(
          db,
          [second, first].map((asset) => ({
            request_id: asset.requestId,
            state: 'succeeded' as const,
            cost_ap: 1,
            assets: [fileOf(asset)],
            cache_key: CACHE_KEY,
          })),
        );
        const answering = async (): Promise<string> =>
          (await selectOne<{ request_id: string }>(db, 'select request_id from app.result_cache')).request_id;
        expect(await answering()).to.equal(second.requestId);
        await post(db, third, [fileOf(third)], { cache_key: CACHE_KEY });
        expect(await answering()).to.equal(third.requestId);
      }),
    );

    it(
      'does not answer for a cancelled request, and goes when it is past its time',
      alone(async (db) => {
        const cancelled = await begin(db, await openRequest(db));
        await post(db, cancelled, [fileOf(cancelled)], { state: 'cancelled', cache_key: CACHE_KEY });
        expect(await selectRows(db, 'select * from app.result_cache')).to.deep.equal([]);
        const asset = await begin(db, await openRequest(db));
        await post(db, asset, [fileOf(asset)], { cache_key: CACHE_KEY });
        expect(await selectOne(db, 'select app.purge_expired() as n')).to.deep.equal({ n: 0 });
        await db.query(`update app.result_cache set expires_at = now() - interval '1 second'`);
        expect(await selectOne(db, 'select app.purge_expired() as n')).to.deep.equal({ n: 1 });
        expect(await selectRows(db, 'select * from app.result_cache')).to.deep.equal([]);
      }),
    );
  });

  describe('is over', () => {
    it(
      'when its request was voided, an hour after it was begun, and leaves nothing',
      alone(async (db) => {
        const asset = await begin(db, await openRequest(db));
        await settle(db, [
          { request_id: asset.requestId, state: 'failed', cost_ap: 0, error_code: 'generation_failed' },
        ]);
        expect(await due(db)).to.deep.equal([]);
        await letTimePass(db);
        expect(await due(db)).to.deep.equal([asset.id]);
        expect(await due(db), 'somebody is deleting it').to.deep.equal([]);
        await letTimePass(db, '11 minutes');
        expect(await due(db), 'nobody did').to.deep.equal([asset.id]);
        await purge(db, [asset.id]);
        expect(await rowOf(db, asset)).to.equal(undefined);
      }),
    );

    it(
      'when its request never came to be',
      alone(async (db) => {
        const accountId = await makeAccount(db);
        const asset = await begin(db, { accountId, requestId: v7() }, { kind: 'input' });
        await letTimePass(db);
        expect(await due(db)).to.deep.equal([asset.id]);
      }),
    );

    it(
      'not while its request is under way, however long that takes',
      alone(async (db) => {
        const request = await openRequest(db);
        const kinds = ['image', 'input', 'partial'];
        const assets = await Promise.all(kinds.map((kind) => begin(db, request, { kind })));
        for (let hour = 0; hour < 3; hour += 1) {
          await letTimePass(db);
          expect(await due(db)).to.deep.equal([]);
          expect(isAbout((await rowOf(db, assets[0] as Begun))?.sweep_at, DAY_MS / 24)).to.equal(true);
        }
      }),
    );

    it(
      'an hour after its request has ended, if it is a partial picture',
      alone(async (db) => {
        const partial = await begin(db, await openRequest(db), { kind: 'partial' });
        await letTimePass(db);
        await settle(db, [{ request_id: partial.requestId, state: 'succeeded', cost_ap: 1 }]);
        expect(await due(db)).to.deep.equal([]);
        await letTimePass(db);
        await db.query(`update app.requests set finished_at = finished_at - interval '2 hours'`);
        expect(await due(db)).to.deep.equal([partial.id]);
      }),
    );

    it(
      'when it has expired, and keeps its row',
      alone(async (db) => {
        const asset = await begin(db, await openRequest(db));
        await post(db, asset, [fileOf(asset)]);
        await letTimePass(db, '29 days');
        expect(await due(db)).to.deep.equal([]);
        await letTimePass(db, '25 hours');
        expect(await due(db)).to.deep.equal([asset.id]);
        await purge(db, [asset.id]);
        const row = await rowOf(db, asset);
        expect(row).to.include({ state: 'stored', bytes: 5, sweep_at: null });
        expect(isAbout(row?.purged_at, 0)).to.equal(true);
        await letTimePass(db, '90 days');
        expect(await due(db)).to.deep.equal([]);
      }),
    );

    it(
      'when its owner deletes it, at once, and nobody else may',
      alone(async (db) => {
        const asset = await begin(db, await openRequest(db));
        const stranger = await makeAccount(db);
        const remove = async (account: string | null): Promise<unknown[]> =>
          await selectRows(db, 'select * from app.delete_assets($1, $2)', [account, [asset.id]]);
        expect(await remove(asset.accountId), 'not stored yet').to.deep.equal([]);
        await post(db, asset, [fileOf(asset)]);
        expect(await remove(stranger)).to.deep.equal([]);
        expect(await remove(asset.accountId)).to.deep.equal([{ delete_assets: asset.id }]);
        expect(await remove(asset.accountId), 'again').to.deep.equal([]);
        expect(await due(db)).to.deep.equal([asset.id]);
        await purge(db, [asset.id]);
        expect(isAbout((await rowOf(db, asset))?.deleted_at, 0)).to.equal(true);
      }),
    );

    it(
      'when an operator takes it down, also after its file has gone',
      alone(async (db) => {
        const asset = await begin(db, await openRequest(db));
        await post(db, asset, [fileOf(asset)]);
        await letTimePass(db, '31 days');
        await purge(db, await due(db));
        const rows = await selectRows(db, 'select * from app.delete_assets(null, $1)', [[asset.id]]);
        expect(rows).to.deep.equal([{ delete_assets: asset.id }]);
        expect(await rowOf(db, asset)).to.include({ sweep_at: null });
      }),
    );

    it(
      'when it is a removed character’s, once no request is open that may have named it',
      alone(async (db) => {
        const asset = { id: v7(), accountId: await makeAccount(db) };
        await db.query(
          `insert into app.assets (id, account_id, kind, content_type, bytes, sha256, state, sweep_at)
             values ($1, $2, 'character', 'image/png', 1, sha256('x'), 'stored', null)`,
          [asset.id, asset.accountId],
        );
        await db.query(
          `insert into app.characters (id, account_id, slug, name_ja, name_en, prompt, reference_asset_id)
             values ($1, $2, 'fox', 'x', 'x', 'x', $1)`,
          [asset.id, asset.accountId],
        );
        const chat = makeSubmission(asset.accountId, { hold_ap: 0 });
        const picture = makeSubmission(asset.accountId, { hold_ap: 0, task: 'images/generate' });
        await submit(db, [chat, picture]);
        await db.query('select app.remove_character($1, $2)', [asset.accountId, asset.id]);
        expect(await due(db)).to.deep.equal([]);
        for (let look = 0; look < 2; look += 1) {
          await db.query(`update app.assets set sweep_at = now() where sweep_at is not null`);
          expect(await due(db), 'one is open').to.deep.equal([]);
        }
        await settle(db, [{ request_id: picture.id, state: 'cancelled', cost_ap: 0 }]);
        await db.query(`update app.assets set sweep_at = now() where sweep_at is not null`);
        expect(await due(db)).to.deep.equal([asset.id]);
      }),
    );

    it(
      'not when it was given more time meanwhile',
      alone(async (db) => {
        const asset = await begin(db, await openRequest(db));
        await post(db, asset, [fileOf(asset)]);
        await letTimePass(db, '31 days');
        await db.query('update app.assets set expires_at = null');
        expect(await due(db)).to.deep.equal([]);
        expect((await rowOf(db, asset))?.sweep_at).to.equal(null);
      }),
    );

    it(
      'when whoever put it gives it up; inputs only after their request',
      alone(async (db) => {
        const request = await openRequest(db);
        const [image, input, stored] = [
          await begin(db, request),
          await begin(db, request, { kind: 'input' }),
          await begin(db, request, { position: 1 }),
        ];
        const ids = [image.id, input.id, stored.id];
        const abandon = async (): Promise<string[]> =>
          (await selectRows<{ id: string }>(db, 'select * from app.abandon_assets($1)', [ids])).map(
            (row) => row.id,
          );
        expect(await abandon()).to.have.members([image.id, stored.id]);
        await purge(db, [image.id]);
        await post(db, request, [fileOf(stored)]);
        expect(await abandon()).to.deep.equal([input.id]);
        await purge(db, ids);
        expect((await rowOf(db, stored))?.purged_at, 'it is shown').to.equal(null);
        expect(await rowOf(db, input)).to.equal(undefined);
      }),
    );
  });
});

describe('a file’s row, in transactions of their own,', () => {
  const database = withDatabase();

  it('that is missing, another request’s, or stored already keeps the charge off the books', async () => {
    const asset = await begin(database.pool, await openRequest(database.pool));
    const other = await begin(database.pool, await openRequest(database.pool, asset.accountId));
    await post(database.pool, other, [fileOf(other)]);
    for (const wrong of [{ id: v7() }, other]) {
      const error = await post(database.pool, asset, [fileOf(asset), fileOf(wrong)]).catch(
        (thrown: Error) => thrown,
      );
      expect(error).to.have.property(
        'message',
        '1 of 2 files that a settlement names were not begun for its request',
      );
    }
    expect((await rowOf(database.pool, asset))?.state).to.equal('writing');
    expect(await post(database.pool, asset, [fileOf(asset)])).to.have.nested.property('[0].is_settled', true);
  });

  it('is given to one of many who sweep at once', async () => {
    const accountId = await makeAccount(database.pool);
    const request = { accountId, requestId: v7() };
    const ids = await Promise.all(
      Array.from(
        { length: 60 },
        async (_, position) => (await begin(database.pool, request, { position })).id,
      ),
    );
    await letTimePass(database.pool);
    const found = await Promise.all(Array.from({ length: 12 }, () => due(database.pool, 10)));
    const all = found.flat().filter((id) => ids.includes(id));
    expect(new Set(all).size, 'twice').to.equal(all.length);
    // who met locked rows looked at fewer; the next look finds them
    while (all.length < ids.length) {
      const more = (await due(database.pool, 10)).filter((id) => ids.includes(id));
      expect(more).to.not.deep.equal([]);
      all.push(...more);
    }
    expect(all).to.have.members(ids);
  });
});
