/**
 * Paid operations without a job, and the lives of published and certified pictures: step by step as tables of what is done, what that
 * answers, and how everything stands after it.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type pg from 'pg';
import { v7 } from 'uuid';
import {
  makeAccount,
  makeKey,
  makeSubmission,
  type Queryable,
  type Submission,
  selectOne,
  selectRows,
  settle,
  submit,
  withDatabase,
  withRollback,
} from '../helpers/database.ts';

const PRICE_AP = 40;
const DAY_MS = 86_400_000;
const BODY_SHA256 = '11'.repeat(32);

interface Answer {
  readonly outcome: string;
  readonly hold_ap: number | null;
  readonly other_request_id: string | null;
}

interface Picture {
  readonly accountId: string;
  readonly requestId: string;
  readonly assetId: string;
  readonly keyId: string;
}

async function makePicture(db: Queryable, grantedAp = 1000, position = 0, of?: Picture): Promise<Picture> {
  const accountId = of?.accountId ?? (await makeAccount(db, { grantedAp }));
  const keyId = of?.keyId ?? (await makeKey(db, accountId)).keyId;
  const assetId = v7();
  const submission = makeSubmission(accountId, { area: 'images', task: 'images/generate', hold_ap: 0 });
  if (of === undefined) await submit(db, [submission]);
  const requestId = of?.requestId ?? submission.id;
  await db.query(
    `insert into app.assets (id, account_id, request_id, kind, position, content_type, bytes, sha256, state, expires_at, sweep_at)
       values ($1, $2, $3, 'image', $4, 'image/png', 1, sha256('x'), 'stored', now() + interval '30 days', now() + interval '30 days')`,
    [assetId, accountId, requestId, position],
  );
  if (of === undefined)
    await settle(db, [
      { request_id: requestId, state: 'succeeded', cost_ap: 0, result: '{}', result_kind: 'json' },
    ]);
  return { accountId, requestId, assetId, keyId };
}

function operation({ accountId, keyId }: Picture, changes: Partial<Submission> & { hold_ap?: number } = {}) {
  return makeSubmission(accountId, {
    key_id: keyId,
    area: 'images',
    task: 'images/publish',
    model_id: 'gallery-submit',
    hold_ap: PRICE_AP,
    ...changes,
  });
}

const imageOf = ({ assetId, requestId }: Picture) => ({
  asset_id: assetId,
  image_id: requestId,
  model_id: 'm',
  license_token: `lic_${randomUUID().replaceAll('-', '')}`,
  license_terms: 't',
  published_at: new Date().toISOString(),
});

async function publish(db: Queryable, picture: Picture, changes: Partial<Submission> = {}): Promise<Answer> {
  return await selectOne<Answer & pg.QueryResultRow>(db, 'select * from app.publish_image($1, $2, $3, 0)', [
    JSON.stringify({ n: 1, ...operation(picture, changes) }),
    JSON.stringify(imageOf(picture)),
    JSON.stringify({ said: 'published' }),
  ]);
}

async function certify(db: Queryable, picture: Picture): Promise<Answer> {
  return await selectOne<Answer & pg.QueryResultRow>(
    db,
    'select * from app.certify_image($1, $2, $3, $4, 0)',
    [
      JSON.stringify({ n: 1, ...operation(picture, { task: 'images/certify' }) }),
      JSON.stringify(imageOf(picture)),
      JSON.stringify({ cert_id: v7(), issued_on: '2026-01-02', details: {}, record_sha256: '22'.repeat(32) }),
      JSON.stringify({ said: 'certified' }),
    ],
  );
}

const withdraw = (db: Queryable, { accountId }: Picture, id: string) =>
  selectRows(db, 'select * from app.withdraw_images($1, $2)', [accountId, id]);
const remove = (db: Queryable, { accountId, assetId }: Picture) =>
  selectRows(db, 'select * from app.delete_assets($1, $2)', [accountId, [assetId]]);

/** How a picture stands: in the gallery, in its totals, kept, and what its account has. */
async function standing(db: Queryable, { assetId, accountId }: Picture) {
  return await selectOne(
    db,
    `select exists (select from app.gallery_items g where g.asset_id = $1 and g.withdrawn_at is null) as is_shown,
        coalesce((select items from app.gallery_totals where character_id = '00000000-0000-0000-0000-000000000000'), 0) as total,
        (select a.expires_at is null from app.assets a where a.id = $1) as is_kept,
        (select b.balance_ap from app.balances b where b.account_id = $2) as balance_ap,
        (select b.held_ap from app.balances b where b.account_id = $2) as held_ap`,
    [assetId, accountId],
  );
}

describe('a paid operation without a job', () => {
  const database = withDatabase();
  const alone = (work: (db: pg.PoolClient) => Promise<void>) => async () =>
    await withRollback(database.pool, work);
  const charge = (db: Queryable, submission: Submission, initialGrantAp = 0) =>
    selectOne<Answer & pg.QueryResultRow>(db, 'select * from app.charge_request($1, $2, $3)', [
      JSON.stringify({ n: 1, ...submission }),
      JSON.stringify({ said: 'done' }),
      initialGrantAp,
    ]);

  it(
    'is held for, charged, recorded and answered in one call, with no job and no hold left',
    alone(async (db) => {
      const picture = await makePicture(db);
      const jobs = 'select count(*) as jobs from graphile_worker._private_jobs';
      const before = await selectOne(db, jobs);
      const submission = operation(picture, { cap_daily_ap: 100 });
      expect(await charge(db, submission)).to.include({ outcome: 'accepted', hold_ap: PRICE_AP });
      expect(await selectOne(db, jobs)).to.deep.equal(before);
      expect(
        await selectRows(db, 'select * from app.holds where account_id = $1', [picture.accountId]),
      ).to.deep.equal([]);
      const request = await selectOne(
        db,
        `select state, cost_ap, usage, area, r.body, started_at is not null and finished_at is not null as is_timed
           from app.requests q join app.request_results r on r.request_id = q.id where q.id = $1`,
        [submission.id],
      );
      expect(request).to.deep.equal({
        state: 'succeeded',
        cost_ap: PRICE_AP,
        usage: { calls: 1 },
        area: 'images',
        body: '{"said": "done"}',
        is_timed: true,
      });
      const ledger = await selectRows(
        db,
        'select kind, amount_ap, balance_after_ap from app.ledger_entries where request_id = $1',
        [submission.id],
      );
      expect(ledger).to.deep.equal([
        { kind: 'charge', amount_ap: -PRICE_AP, balance_after_ap: 1000 - PRICE_AP },
      ]);
      const { problems } = await selectOne<{ problems: unknown[] }>(
        db,
        'select problems from app.ledger_check()',
      );
      expect(problems).to.deep.equal([]);
    }),
  );

  it(
    'gives the initial grant, when it is an account’s first billable call',
    alone(async (db) => {
      const accountId = await makeAccount(db);
      const { keyId } = await makeKey(db, accountId);
      const submission = operation({ accountId, keyId, assetId: '', requestId: '' });
      expect((await charge(db, submission, 500)).outcome).to.equal('accepted');
      const { balance } = await selectOne<{ balance: number }>(
        db,
        'select balance_ap as balance from app.balances where account_id = $1',
        [accountId],
      );
      expect(balance).to.equal(500 - PRICE_AP);
    }),
  );

  it(
    'that costs nothing is recorded, and leaves no line in the ledger',
    alone(async (db) => {
      const picture = await makePicture(db);
      const submission = operation(picture, { hold_ap: 0 });
      expect(await charge(db, submission)).to.include({ outcome: 'accepted', hold_ap: 0 });
      expect(
        await selectRows(db, 'select * from app.ledger_entries where request_id = $1', [submission.id]),
      ).to.deep.equal([]);
    }),
  );

  const REFUSED: readonly (readonly [outcome: string, changes: Partial<Submission>])[] = [
    ['insufficient_ap', { fixed_milli_ap: 1_001_000 }],
    ['request_over_key_cap', { cap_per_request_ap: PRICE_AP - 1 }],
    ['request_over_key_cap', { cap_daily_ap: PRICE_AP - 1 }],
    ['request_over_key_cap', { cap_monthly_ap: PRICE_AP - 1 }],
    ['user_daily_cap', { grant_daily_cap_ap: PRICE_AP - 1 }],
    ['card_required', { needs_purchased: true }],
  ];
  for (const [outcome, changes] of REFUSED) {
    it(
      `is refused as every request (${outcome}: ${Object.keys(changes)[0]}), and then nothing is done`,
      alone(async (db) => {
        const picture = await makePicture(db);
        const before = await standing(db, picture);
        const answer = await publish(db, picture, {
          idempotency_key: 'k',
          body_sha256: BODY_SHA256,
          ...changes,
        });
        expect(answer.outcome).to.equal(outcome);
        expect(await standing(db, picture)).to.deep.equal(before);
        for (const table of ['licenses', 'idempotency_keys', 'gallery_items'])
          expect(await selectRows(db, `select * from app.${table}`), table).to.deep.equal([]);
      }),
    );
  }
});

describe('a published picture', () => {
  const database = withDatabase();
  const alone = (work: (db: pg.PoolClient) => Promise<void>) => async () =>
    await withRollback(database.pool, work);

  /** Step, its outcome, and then: shown, total, kept, AP spent in all. */
  type Step = readonly [string, string, boolean, number, boolean, number];
  const LIVES: Readonly<Record<string, readonly Step[]>> = {
    'published again and again': [
      ['publish', 'accepted', true, 1, true, 40],
      ['publish', 'unchanged', true, 1, true, 40],
      ['publish', 'unchanged', true, 1, true, 40],
    ],
    'taken back and published again': [
      ['publish', 'accepted', true, 1, true, 40],
      ['withdraw', '1', false, 0, false, 40],
      ['withdraw', '1', false, 0, false, 40],
      ['publish', 'republished', true, 1, true, 40],
      ['withdraw', '1', false, 0, false, 40],
    ],
    'deleted while it is published': [
      ['publish', 'accepted', true, 1, true, 40],
      ['delete', '1', false, 0, true, 40],
      ['publish', 'gone', false, 0, true, 40],
      ['withdraw', '1', false, 0, true, 40],
      ['delete', '0', false, 0, true, 40],
    ],
    'expired before it is published': [
      ['expire', '', false, 0, false, 0],
      ['publish', 'expired', false, 0, false, 0],
      ['certify', 'expired', false, 0, false, 0],
    ],
    'certified, published, taken back: kept as long as it is certified': [
      ['certify', 'accepted', false, 0, true, 40],
      ['publish', 'accepted', true, 1, true, 80],
      ['withdraw', '1', false, 0, true, 80],
      ['certify', 'entry_already_certified', false, 0, true, 80],
      ['revoke', '', false, 0, true, 80],
      ['withdraw', '1', false, 0, false, 80],
    ],
    'never published': [['withdraw', '0', false, 0, false, 0]],
  };
  for (const [life, steps] of Object.entries(LIVES)) {
    it(
      life,
      alone(async (db) => {
        const picture = await makePicture(db);
        for (const [index, [step, outcome, isShown, total, isKept, spentAp]] of steps.entries()) {
          const said = await perform(db, picture, step);
          const title = `${index}: ${step}`;
          expect(said, title).to.equal(outcome);
          expect(await standing(db, picture), title).to.deep.equal({
            is_shown: isShown,
            total,
            is_kept: isKept,
            balance_ap: 1000 - spentAp,
            held_ap: 0,
          });
        }
      }),
    );
  }

  async function perform(db: Queryable, picture: Picture, step: string): Promise<string> {
    switch (step) {
      case 'publish':
        return (await publish(db, picture)).outcome;
      case 'certify':
        return (await certify(db, picture)).outcome;
      case 'withdraw':
        return String((await withdraw(db, picture, picture.assetId)).length);
      case 'delete':
        return String((await remove(db, picture)).length);
      case 'revoke':
        await db.query(`update app.certs set status = 'revoked'`);
        return '';
      default:
        await db.query('update app.assets set expires_at = now(), sweep_at = now() where id = $1', [
          picture.assetId,
        ]);
        return '';
    }
  }

  it(
    'that expired while its row was waited for is expired, and nothing is charged',
    alone(async (db) => {
      const picture = await makePicture(db);
      // behind the beginning of this transaction, which is what now() says
      await db.query('update app.assets set expires_at = clock_timestamp() where id = $1', [picture.assetId]);
      for (const tried of [await publish(db, picture), await certify(db, picture)])
        expect(tried.outcome).to.equal('expired');
      expect(await standing(db, picture)).to.include({ is_shown: false, balance_ap: 1000, held_ap: 0 });
    }),
  );

  it(
    'that is taken back expires when it would have, and not within a day',
    alone(async (db) => {
      for (const [kept, expected] of [
        ['10 days', 10 * DAY_MS],
        ['-10 days', DAY_MS],
      ] as const) {
        const picture = await makePicture(db);
        await publish(db, picture);
        await db.query(`update app.assets set kept_expires_at = now() + $1::interval where id = $2`, [
          kept,
          picture.assetId,
        ]);
        await withdraw(db, picture, picture.assetId);
        const row = await selectOne<{ left_ms: number; kept_expires_at: Date | null; is_swept: boolean }>(
          db,
          `select (extract(epoch from expires_at - now()) * 1000)::float8 as left_ms, kept_expires_at, sweep_at = expires_at as is_swept
             from app.assets where id = $1`,
          [picture.assetId],
        );
        expect(row.left_ms).to.equal(expected);
        expect(row).to.include({ kept_expires_at: null, is_swept: true });
      }
    }),
  );

  it(
    'is another account’s to neither publish nor take back',
    alone(async (db) => {
      const picture = await makePicture(db);
      const stranger = { ...(await makePicture(db)), assetId: picture.assetId };
      expect((await publish(db, stranger)).outcome).to.equal('not_found');
      expect((await certify(db, stranger)).outcome).to.equal('not_found');
      await publish(db, picture);
      expect(await withdraw(db, stranger, picture.assetId)).to.deep.equal([]);
      expect(await standing(db, picture)).to.include({ is_shown: true });
    }),
  );

  it(
    'is taken back with its generation, and keeps its license',
    alone(async (db) => {
      const first = await makePicture(db);
      const second = await makePicture(db, 0, 1, first);
      for (const picture of [first, second]) await publish(db, picture);
      const tokens = await selectRows(db, 'select token from app.licenses order by token');
      expect(await withdraw(db, first, first.requestId)).to.have.length(2);
      await publish(db, second);
      expect(await selectRows(db, 'select token from app.licenses order by token')).to.deep.equal(tokens);
    }),
  );

  it(
    'under a known Idempotency-Key is answered by it, even where nothing would be charged',
    alone(async (db) => {
      const key = { idempotency_key: 'k', body_sha256: BODY_SHA256 };
      const picture = await makePicture(db);
      await publish(db, picture, key);
      const [request] = await selectRows<{ request_id: string }>(
        db,
        'select request_id from app.idempotency_keys',
      );
      expect(await publish(db, picture, key)).to.include({
        outcome: 'replay',
        other_request_id: request?.request_id,
      });
      expect((await publish(db, picture, { ...key, body_sha256: '33'.repeat(32) })).outcome).to.equal(
        'idempotency_conflict',
      );
      await db.query(`update app.idempotency_keys set created_at = now() - interval '25 hours'`);
      expect((await publish(db, picture, key)).outcome).to.equal('unchanged');
    }),
  );

  it(
    'is counted with its character, and by the totals whatever happens',
    alone(async (db) => {
      const pictures: Picture[] = [];
      const characters = [randomUUID(), randomUUID()];
      for (const [index, id] of characters.entries()) {
        const picture = await makePicture(db);
        await db.query(
          `insert into app.characters (id, account_id, slug, name_ja, name_en, prompt) values ($1, $2, $3, 'x', 'x', 'x')`,
          [id, picture.accountId, `fox-${index}`],
        );
        for (let position = 0; position < 3; position += 1) {
          const one = position === 0 ? picture : await makePicture(db, 0, position, picture);
          await db.query(
            `update app.assets set details = jsonb_build_object('characterId', $1::text) where id = $2`,
            [id, one.assetId],
          );
          await publish(db, one);
          pictures.push(one);
        }
      }
      await withdraw(db, pictures[0] as Picture, pictures[0]?.assetId ?? '');
      await remove(db, pictures[4] as Picture);
      await remove(db, pictures[5] as Picture);
      const totals = await selectRows<{ character_id: string; items: number }>(
        db,
        'select character_id, items from app.gallery_totals',
      );
      const itemsOf = (id: string) => totals.find((row) => row.character_id === id)?.items;
      expect([itemsOf('00000000-0000-0000-0000-000000000000'), ...characters.map(itemsOf)]).to.deep.equal([
        3, 2, 1,
      ]);
    }),
  );
});
