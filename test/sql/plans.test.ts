/**
 * No statement of a request's way reads a large table whole, and submitting and settling take as long on large tables as on
 * empty ones. Plans are those that ran (auto_explain), also of sessions that made theirs while the tables were empty, as
 * every long-lived connection of a new installation has.
 *
 *   SVC_PLANS_ROWS=10000000 npx mocha …   # by hand, with figures: docs/explain.md
 */
import { expect } from 'chai';
import { Logger, run } from 'graphile-worker';
import { after, before, describe, it } from 'mocha';
import pg from 'pg';
import { v7 } from 'uuid';
import { abandonAssets, beginAssets, purgeAssets } from '../../core/assets/rows.ts';
import type { Pool } from '../../core/database.ts';
import { findBalance, findKeyDetails } from '../../ingress/data/accounts.ts';
import {
  deleteAssets,
  findAsset,
  findAssetsOfRequest,
  findCachedResult,
  listAssets,
} from '../../ingress/data/assets.ts';
import { findLicense } from '../../ingress/data/certificates.ts';
import {
  findCharacterPicture,
  findPublicCharacter,
  findUsableCharacter,
  listPublicCharacters,
  registerCharacter,
} from '../../ingress/data/characters.ts';
import {
  findGalleryFile,
  findGalleryItem,
  listGallery,
  publishImage,
  withdrawImages,
} from '../../ingress/data/gallery.ts';
import { findGeneration, findImage, listGenerations } from '../../ingress/data/images.ts';
import { claimCachedAnswer, findBegun, findRequest, listRequests } from '../../ingress/data/requests.ts';
import { readStatistics } from '../../ingress/data/statistics.ts';
import { foreseeSubmission, submitFundedRequests } from '../../ingress/data/submissions.ts';
import { findDueAssets, findInputIds } from '../../workers/data/assets.ts';
import { findLost, findState, loadInput, markRunning } from '../../workers/data/requests.ts';
import {
  makeAccount,
  makeSubmission,
  type Queryable,
  type Submission,
  selectOne,
  settle,
  submit,
  withDatabase,
} from '../helpers/database.ts';
import { submissionOf } from '../helpers/submissions.ts';
import {
  collectScans,
  connectExplained,
  type ExplainedClient,
  explainedConfig,
  type Scan,
} from './explain.ts';
import { fill, type LargeTables } from './large-tables.ts';

const ROWS = Number(process.env.SVC_PLANS_ROWS ?? 200_000);
const IS_BY_HAND = process.env.SVC_PLANS_ROWS !== undefined;
/** As often as PostgreSQL needs to settle on a generic plan, and once more. */
const REPEATS = 7;

interface Statement {
  readonly title: string;
  readonly perform: (client: pg.Client, data: LargeTables) => Promise<unknown>;
  /** Rows any one scan may look at. */
  readonly maxRows: number;
  /** This table it reads whole, and should. */
  readonly whole?: string;
}

// the data files take a pool; one connection is as good
const asPool = (client: pg.Client): Pool => client as unknown as Pool;

const capped = { cap_daily_ap: 1_000_000, cap_monthly_ap: 1_000_000, grant_daily_cap_ap: 1_000_000 };
let serial = 0;
const submissionsOf = (data: LargeTables, count: number): Submission[] =>
  Array.from({ length: count }, () => {
    serial += 1;
    return makeSubmission(data.busyAccountId, {
      key_id: data.busyAccountId,
      idempotency_key: `plans ${serial}`,
      body_sha256: '11'.repeat(32),
      hold_ap: 1,
      ...capped,
    });
  });

const filter = (data: LargeTables) => ({
  accountId: data.busyAccountId,
  before: undefined,
  state: undefined,
  area: undefined,
  from: undefined,
  to: undefined,
  limit: 20,
});

/** A page and the row that tells whether there is another: nothing newer than the cursor is read. */
const PAGING_ROWS = 21;

const STATEMENTS: readonly Statement[] = [
  {
    title: 'find_key',
    perform: (client, data) =>
      client.query({ name: 'find_key', text: 'select * from app.find_key($1)', values: [data.secretHash] }),
    maxRows: 1,
  },
  {
    title: 'submit_requests and settle_requests, one request',
    perform: async (client, data) => {
      const submissions = submissionsOf(data, 1);
      await submit(client, submissions);
      await end(client, submissions);
    },
    maxRows: 3, // counters: the key's day and month, the account's day
  },
  {
    title: 'submit_requests and settle_requests, 50 requests',
    perform: async (client, data) => {
      const submissions = submissionsOf(data, 50);
      await submit(client, submissions);
      await end(client, submissions);
    },
    maxRows: 150,
  },
  {
    title: 'submit_funded_requests, 50 requests',
    perform: async (client, data) => {
      await client.query('update app.balances set purchased_ap = balance_ap where account_id = $1', [
        data.busyAccountId,
      ]);
      const submissions = Array.from({ length: 50 }, () => submissionOf(data.busyAccountId));
      const batch = submissions.map((submission) => ({ submission, inputJson: '{}' }));
      const rows = await submitFundedRequests(asPool(client), batch);
      expect(rows.filter((row) => row === undefined)).to.have.length(0);
    },
    maxRows: 150,
  },
  {
    title: 'settle_requests of what is settled already',
    perform: (client, data) =>
      settle(client, [{ request_id: data.recentId, state: 'succeeded', cost_ap: 1 }]),
    maxRows: 1,
  },
  {
    title: 'the idempotency look-up of a replay',
    perform: (client, data) =>
      submit(client, [
        makeSubmission(data.busyAccountId, { idempotency_key: `key ${data.recentId}`, body_sha256: '78' }),
      ]),
    maxRows: 1,
  },
  {
    title: 'foresee_submission',
    perform: (client, data) =>
      foreseeSubmission(asPool(client), 0, {
        id: v7(),
        accountId: data.busyAccountId,
        keyId: data.busyAccountId,
        area: 'images',
        task: 'images/generate',
        modelId: 'm',
        priceId: 1,
        isStream: false,
        ingressId: null,
        quote: { fixedMilliAp: 0, unitMilliAp: 1000, minUnits: 1, maxUnits: 1 },
        timeoutSeconds: 60,
        idempotency: { key: `new key ${data.recentId}`, bodySha256: '11'.repeat(32) },
        caps: { perRequestAp: 10, dailyAp: 10, monthlyAp: 10, grantDailyAp: 10 },
        isFunded: false,
        isGrantAllowed: false,
        needsPurchased: false,
        input: null,
      }),
    maxRows: 1,
  },
  {
    title: 'cancel_request',
    perform: async (client, data) => {
      const [submission] = submissionsOf(data, 1) as [Submission];
      await submit(client, [submission]);
      await client.query('select * from app.cancel_request($1, $2)', [submission.id, data.busyAccountId]);
    },
    maxRows: 3,
  },
  {
    title: 'a request by its id, with its result',
    perform: (client, data) => findRequest(asPool(client), data.recentId, data.busyAccountId),
    maxRows: 1,
  },
  {
    title: 'running and finished requests by their ids, with their results',
    perform: (client, data) => findBegun(asPool(client), [data.recentId, ...data.openIds.slice(0, 9)]),
    maxRows: 10,
  },
  {
    title: 'an account’s newest requests',
    perform: (client, data) => listRequests(asPool(client), filter(data)),
    maxRows: 21,
  },
  {
    title: 'the next page of an account’s requests, months back',
    perform: (client, data) => listRequests(asPool(client), { ...filter(data), before: data.oldId }),
    maxRows: PAGING_ROWS,
  },
  {
    title: 'an account’s requests of a day months back',
    perform: (client, data) =>
      listRequests(asPool(client), {
        ...filter(data),
        from: new Date(Date.now() - 150 * 86_400_000),
        to: new Date(Date.now() - 149 * 86_400_000),
      }),
    maxRows: PAGING_ROWS,
  },
  {
    title: 'an account’s balance and its key’s use',
    perform: async (client, data) => {
      await findBalance(asPool(client), data.busyAccountId);
      await findKeyDetails(asPool(client), data.busyAccountId);
    },
    maxRows: 1,
  },
  {
    title: 'mark_running',
    perform: (client, data) => markRunning(asPool(client), data.openIds.slice(0, 50)),
    maxRows: 50,
  },
  {
    title: 'lost_holds',
    perform: (client, data) => findLost(asPool(client), data.openIds.slice(0, 50)),
    maxRows: 50,
  },
  {
    title: 'the state of a request that a worker takes up, and its input',
    perform: async (client, data) => {
      await findState(asPool(client), data.openIds[0] ?? '');
      await loadInput(asPool(client), data.openIds[0] ?? '');
    },
    maxRows: 1,
  },
  {
    title: 'submit_requests and settle_requests, one request with two files, cached',
    perform: async (client, data) => {
      const submissions = submissionsOf(data, 1);
      await submit(client, submissions);
      const begun = await beginTwo(client, data, submissions[0]?.id ?? null);
      await settle(client, [
        {
          request_id: submissions[0]?.id ?? '',
          state: 'succeeded',
          cost_ap: 1,
          assets: begun.map((id) => ({ id, bytes: 1, sha256: '11'.repeat(32), retention_days: 30 })),
          cache_key: '22'.repeat(32),
        },
      ]);
    },
    maxRows: 3,
  },
  {
    title: 'begin_assets, abandon_assets and purge_assets',
    perform: async (client, data) => {
      const begun = await beginTwo(client, data, v7());
      await abandonAssets(asPool(client), begun);
      await purgeAssets(asPool(client), begun);
    },
    maxRows: 2,
  },
  {
    title: 'a file by its id, and those of a request',
    perform: async (client, { asset, busyAccountId }) => {
      await findAsset(asPool(client), asset.id, busyAccountId);
      await findAssetsOfRequest(asPool(client), asset.requestId, busyAccountId, ['image', 'preview']);
      await findInputIds(asPool(client), asset.requestId);
      await deleteAssets(asPool(client), busyAccountId, [v7(), asset.requestId]);
    },
    maxRows: 1,
  },
  {
    title: 'a cached result',
    perform: (client, { asset, busyAccountId }) =>
      findCachedResult(asPool(client), busyAccountId, asset.cacheKey),
    maxRows: 1,
  },
  {
    title: 'a page of an account’s pictures',
    perform: (client, { asset, busyAccountId }) =>
      listAssets(asPool(client), { accountId: busyAccountId, kind: 'image', before: asset.id, limit: 21 }),
    // of an account with a tenth of all pictures, the primary key read backwards is as good: ten looked at for each
    maxRows: 21 * 15,
  },
  {
    title: 'a generation and its pictures, by the id of either',
    perform: async (client, { asset, busyAccountId }) => {
      await findGeneration(asPool(client), asset.requestId, busyAccountId);
      await findImage(asPool(client), asset.requestId, busyAccountId);
    },
    maxRows: 1,
  },
  {
    title: 'a page of an account’s generations',
    perform: (client, { asset, busyAccountId }) =>
      listGenerations(asPool(client), { accountId: busyAccountId, before: asset.id, limit: 21 }),
    maxRows: 21 * 15, // as above
  },
  {
    title: 'an Idempotency-Key for an answer from the cache',
    perform: (client, { busyAccountId, recentId }) =>
      claimCachedAnswer(
        asPool(client),
        busyAccountId,
        { key: `key ${recentId}`, bodySha256: '11'.repeat(32) },
        recentId,
      ),
    maxRows: 1,
  },
  {
    title: 'a page of the gallery, of all and of a character, also deep in it',
    perform: async (client, { characterId }) => {
      for (const wanted of [null, characterId]) {
        await listGallery(asPool(client), { characterId: wanted, limit: 20, offset: 0 });
        await listGallery(asPool(client), { characterId: wanted, limit: 20, offset: 100 });
      }
    },
    maxRows: 120, // what is skipped is read
  },
  {
    title: 'a gallery item, its file, its license',
    perform: async (client, { asset, licenseToken }) => {
      await findGalleryItem(asPool(client), asset.id);
      await findGalleryFile(asPool(client), asset.id);
      await findGalleryFile(asPool(client), asset.requestId);
      await findLicense(asPool(client), licenseToken);
    },
    maxRows: 1,
  },
  {
    title: 'publish_image of what is published, and withdraw_images',
    perform: async (client, { asset, busyAccountId }) => {
      const [submission] = [makeSubmission(busyAccountId, { key_id: busyAccountId })];
      const image = {
        asset_id: asset.id,
        image_id: asset.requestId,
        model_id: 'm',
        license_token: `lic_${'y'.repeat(32)}`,
        license_terms: 't',
        published_at: new Date().toISOString(),
      };
      const charge = { submission: JSON.stringify({ n: 1, ...submission }), initialGrantAp: 0 };
      await withdrawImages(asPool(client), busyAccountId, asset.requestId);
      await publishImage(asPool(client), charge, image, {});
    },
    maxRows: 2, // the total of all and that of the character
  },
  {
    title: 'characters: one by its slug or id, its picture, registering',
    perform: async (client, { busyAccountId }) => {
      await findUsableCharacter(asPool(client), 'character-7', busyAccountId);
      await findPublicCharacter(asPool(client), v7());
      await findCharacterPicture(asPool(client), 'character-7');
      const character = {
        id: v7(),
        accountId: busyAccountId,
        slug: 'taken', // from the second time on
        nameJa: 'x',
        nameEn: 'x',
        prompt: 'x',
        isPublic: false,
        payeeAccountId: null,
        payeeSubject: null,
        royaltyBps: 0,
      };
      await registerCharacter(asPool(client), character, undefined, 100);
    },
    maxRows: 1,
  },
  {
    // they are counted: nearly all of them
    title: 'a page of the public characters',
    perform: (client) => listPublicCharacters(asPool(client), { limit: 20, offset: 20 }),
    maxRows: 2001,
    whole: 'characters',
  },
  {
    title: 'due_assets',
    perform: async (client, data) => {
      const [id] = await beginTwo(client, data, v7());
      await client.query('update app.assets set sweep_at = now() where id = $1', [id]);
      await findDueAssets(asPool(client), 500);
    },
    maxRows: 2,
  },
  {
    // a removed character's picture waits for the requests that were open then
    title: 'due_assets, of a removed character',
    perform: async (client, { busyAccountId }) => {
      const id = v7();
      await client.query(
        `insert into app.assets (id, account_id, kind, content_type, bytes, sha256, state, deleted_at, sweep_at)
           values ($1, $2, 'character', 'image/png', 1, sha256('x'), 'stored', now(), now())`,
        [id, busyAccountId],
      );
      await findDueAssets(asPool(client), 500);
      await client.query('delete from app.assets where id = $1', [id]);
    },
    maxRows: 10_000,
  },
  {
    // the holds are those of the requests under way: reading them all every few seconds is what it is for
    title: 'expire_holds',
    perform: (client) => client.query('select * from app.expire_holds()'),
    maxRows: 10_000,
    whole: 'holds',
  },
  {
    title: 'purge_expired',
    perform: (client) => client.query('select app.purge_expired()'),
    maxRows: 5_000,
  },
  {
    title: 'the figures of the last minute',
    perform: (client) => readStatistics(asPool(client)),
    maxRows: 30_000, // what this test made in the last minute
  },
];

async function beginTwo(client: pg.Client, data: LargeTables, requestId: string | null): Promise<string[]> {
  const begun = [0, 1].map((position) => ({
    id: v7(),
    accountId: data.busyAccountId,
    requestId,
    kind: 'image' as const,
    position,
    contentType: 'image/png',
  }));
  await beginAssets(asPool(client), begun);
  return begun.map(({ id }) => id);
}

const end = (db: Queryable, submissions: readonly Submission[]) =>
  settle(
    db,
    submissions.map((submission) => ({
      request_id: submission.id,
      state: 'succeeded' as const,
      cost_ap: 1,
      result: '{}',
      result_kind: 'json' as const,
    })),
  );

/** Small by nature, or not ours to index: reading them whole is right. */
const SMALL =
  /^(processes|models|prices|providers|routes|voices|_private_tasks|_private_job_queues|known_crontabs)$/;

function expectIndexed(scans: readonly Scan[], maxRows: number, whole?: string): void {
  expect(scans, 'auto_explain told of nothing').to.not.be.empty;
  const bad = scans.filter((scan) => {
    if (SMALL.test(scan.table)) return false;
    // an empty table (the partition of a month to come) is best read whole
    const isWhole = scan.node === 'Seq Scan' && scan.rows > 0 && scan.table !== whole;
    return isWhole || scan.rows > maxRows;
  });
  expect(bad).to.deep.equal([]);
}

describe('plans on large tables', function () {
  this.timeout(IS_BY_HAND ? 3_600_000 : 60_000);
  const database = withDatabase();
  const small = new Map<string, number>();
  let early: ExplainedClient;
  let late: ExplainedClient;
  let plain: pg.Client;
  let data: LargeTables;

  before('measure on small tables, then make them large', async () => {
    early = await connectExplained(database.url);
    plain = new pg.Client({ connectionString: database.url });
    await plain.connect();
    const accountId = await makeAccount(plain, { grantedAp: 1_000_000 });
    const empty = {
      busyAccountId: accountId,
      secretHash: Buffer.alloc(32),
      recentId: v7(),
      oldId: v7(),
      openIds: [v7()],
      asset: { id: v7(), requestId: v7(), cacheKey: '33'.repeat(32) },
      characterId: v7(),
      licenseToken: 'none',
    };
    for (const statement of STATEMENTS) {
      for (let index = 0; index < REPEATS; index += 1) await statement.perform(early.client, empty);
    }
    early.take();
    await measure(plain, empty, small);

    const begun = performance.now();
    const filler = new pg.Client({ connectionString: database.url });
    filler.on('error', () => {}); // its query reports it
    await filler.connect();
    data = await fill(filler, ROWS);
    await filler.query('vacuum analyze');
    await filler.end();
    if (IS_BY_HAND)
      note(`filled with ${ROWS} requests in ${Math.round((performance.now() - begun) / 1000)} s`);
    late = await connectExplained(database.url);
  });

  after('disconnect', async () => {
    for (const client of [early?.client, late?.client, plain]) await client?.end();
  });

  for (const statement of STATEMENTS) {
    it(`${statement.title}: by index`, async () => {
      for (const session of [early, late]) {
        for (let index = 0; index < REPEATS; index += 1) {
          session.take();
          await statement.perform(session.client, data);
          expectIndexed(session.take(), statement.maxRows, statement.whole);
        }
      }
      if (IS_BY_HAND) {
        const ms = await medianMs(() => statement.perform(plain, data), 50);
        note(`${statement.title}: ${ms.toFixed(2)} ms`);
      }
    });
  }

  it('a batch of many accounts is not compared with itself', async () => {
    for (const session of [early, late]) {
      const submissions: ReturnType<typeof submissionOf>[] = [];
      while (submissions.length < 50) {
        submissions.push(submissionOf(await makeAccount(plain, { purchasedAp: 10_000 })));
      }
      session.takeMismatches();
      const batch = submissions.map((submission) => ({ submission, inputJson: '{}' }));
      await submitFundedRequests(asPool(session.client), batch);
      expect(session.takeMismatches()).to.deep.equal([]);
      const settled = await settle(
        session.client,
        submissions.map(({ id }) => ({ request_id: id, state: 'succeeded' as const, cost_ap: 1 })),
      );
      expect(settled.filter((row) => row.is_settled)).to.have.length(50);
      // but for its requests, which come in the same order from both sides: half of the pairs
      const pairs = session.takeMismatches().map((join) => join.pairs);
      expect(pairs).to.deep.equal([(50 * 49) / 2]);
    }
  });

  it('the queue engine takes its jobs by index, however many wait', async () => {
    const scans: Scan[] = [];
    const pool = new pg.Pool({ ...explainedConfig(database.url), max: 4 });
    pool.on('connect', (client) => collectScans(client, scans));
    pool.on('error', () => {});
    let ran = 0;
    const enough = Promise.withResolvers<void>();
    const runner = await run({
      pgPool: pool,
      noHandleSignals: true,
      logger: new Logger(() => () => {}),
      taskList: {
        'large/waiting': () => {
          ran += 1;
          if (ran === 50) enough.resolve();
        },
      },
      preset: { worker: { concurrentJobs: 10, localQueue: { size: 10 }, completeJobBatchDelay: 5 } },
    });
    await enough.promise;
    await runner.stop();
    await pool.end();
    const ofJobs = scans.filter((scan) => scan.table === '_private_jobs');
    expect(ofJobs.some((scan) => scan.statement.includes('skip locked'))).to.equal(true);
    expectIndexed(ofJobs, 100);
  });

  it('submitting and settling look at no more than on small tables', async () => {
    const large = new Map<string, number>();
    await measure(plain, data, large);
    for (const [what, blocks] of large) {
      const before = small.get(what) ?? 0;
      if (IS_BY_HAND) note(`${what}: ${before} blocks small, ${blocks} blocks large`);
      expect(before, 'blocks are counted').to.be.above(0);
      // indexes grow a level or two; what this is to find is a multiple that grows with the tables
      expect(blocks, `${what}: ${before} blocks on small tables`).to.be.below(before * 2 + 20);
    }
  });

  if (IS_BY_HAND) {
    it('housekeeping', async () => {
      const faults = await plain.query('select problems from app.ledger_check()');
      expect(faults.rows).to.deep.equal([{ problems: [] }]);
      for (const statement of [
        'select * from app.ledger_check()',
        'select * from app.expire_holds()',
        'select count(*) from app.holds',
        'select app.maintain_partitions()',
        'select app.purge_expired()',
      ]) {
        const begun = performance.now();
        await plain.query(statement);
        note(`${statement}: ${(performance.now() - begun).toFixed(1)} ms`);
      }
      const sizes = await plain.query(
        `select pg_size_pretty(pg_database_size(current_database())) as database,
                pg_size_pretty(sum(pg_relation_size(oid)) filter (where relname like 'requests%' and relkind = 'r')) as requests,
                pg_size_pretty(sum(pg_indexes_size(oid)) filter (where relname like 'requests%' and relkind = 'r')) as requests_indexes,
                pg_size_pretty(pg_relation_size('app.ledger_entries')) as ledger,
                pg_size_pretty(pg_indexes_size('app.ledger_entries')) as ledger_indexes
           from pg_class where relnamespace = 'app'::regnamespace`,
      );
      note(JSON.stringify(sizes.rows[0]));
    });
  }
});

async function measure(client: pg.Client, data: LargeTables, blocks: Map<string, number>): Promise<void> {
  for (const size of [1, 50]) {
    const waiting: Submission[][] = [];
    blocks.set(
      `submit ${size}`,
      await medianBlocks(
        client,
        async () => {
          const submissions = submissionsOf(data, size);
          waiting.push(submissions);
          await submit(client, submissions);
        },
        20,
      ),
    );
    blocks.set(`settle ${size}`, await medianBlocks(client, () => end(client, waiting.pop() ?? []), 20));
  }
}

async function medianMs(work: () => Promise<unknown>, count: number): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const begun = performance.now();
    await work();
    times.push(performance.now() - begun);
  }
  return times.sort((a, b) => a - b)[Math.floor(count / 2)] ?? 0;
}

/** Blocks of tables and indexes that a statement looks at: what grows with the tables shows here, whatever else the machine does. */
async function medianBlocks(client: pg.Client, work: () => Promise<unknown>, count: number): Promise<number> {
  const blocks: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const before = await blocksSeen(client);
    await work();
    blocks.push((await blocksSeen(client)) - before);
  }
  return blocks.sort((a, b) => a - b)[Math.floor(count / 2)] ?? 0;
}

async function blocksSeen(client: pg.Client): Promise<number> {
  await client.query('select pg_stat_force_next_flush()');
  const { blocks } = await selectOne<{ blocks: number }>(
    client,
    `select coalesce(sum(hits + reads), 0)::bigint as blocks from pg_stat_get_backend_io(pg_backend_pid())
       where object = 'relation'`,
  );
  return blocks;
}

function note(text: string): void {
  process.stdout.write(`      ${text}\n`);
}
