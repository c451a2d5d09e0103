/**
 * Files around a request: put before it is settled, shown from then on, its inputs gone when it has ended; and housekeeping, which
 * takes away what is over.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { JobHelpers } from 'graphile-worker';
import { after, before, describe, it } from 'mocha';
import { pino } from 'pino';
import { v7 } from 'uuid';
import { type AssetDraft, type AssetFiles, makeAssetFiles } from '../../core/assets/files.ts';
import { FolderStore } from '../../core/assets/folder-store.ts';
import { assetKey } from '../../core/assets/keys.ts';
import { AssetMissing, type AssetStore, AssetTooLarge } from '../../core/assets/store.ts';
import { makeLocalBus } from '../../core/relay/bus.ts';
import {
  deleteAssets,
  findAsset,
  findAssetsOfRequest,
  findCachedResult,
  listAssets,
  storeAssets,
} from '../../ingress/data/assets.ts';
import { makeActiveRuns } from '../../workers/active-runs.ts';
import { makeRunAssets, type RunAssets } from '../../workers/assets.ts';
import { makePaidTask } from '../../workers/executor.ts';
import { makeSettler } from '../../workers/settle.ts';
import type { PaidTask } from '../../workers/task.ts';
import { sweepAssets } from '../../workers/tasks/maintenance/assets.ts';
import {
  makeAccount,
  makeSubmission,
  selectOne,
  selectRows,
  submit,
  withDatabase,
} from '../helpers/database.ts';
import { payloadOf } from '../helpers/submissions.ts';

const MAX_BYTES = 1024;
const CACHE_KEY = 'ab'.repeat(32);

const draftOf = (text: string, changes: Partial<AssetDraft> = {}): AssetDraft => ({
  kind: 'image',
  position: 0,
  contentType: 'image/png',
  body: Buffer.from(text),
  maxBytes: MAX_BYTES,
  ...changes,
});

describe('files of requests', () => {
  const database = withDatabase();
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line)) });
  let folder: string;
  let store: AssetStore;
  let files: AssetFiles;
  let assets: RunAssets;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-assets-'));
    store = new FolderStore(folder);
    files = makeAssetFiles({ pool: database.pool, store, retentionDays: 30, logger });
    assets = makeRunAssets({ files, pool: database.pool, logger });
  });
  after(async () => {
    await rm(folder, { recursive: true, force: true });
    expect(lines).to.deep.equal([]);
  });

  /** Every file there is. */
  async function kept(): Promise<string[]> {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
  }
  const rowCount = async (): Promise<number> =>
    (await selectOne<{ n: number }>(database.pool, 'select count(*) as n from app.assets')).n;

  async function openRequest(): Promise<{ accountId: string; requestId: string }> {
    const accountId = await makeAccount(database.pool, { grantedAp: 1000 });
    const submission = makeSubmission(accountId);
    await submit(database.pool, [submission]);
    return { accountId, requestId: submission.id };
  }

  /** Runs a task on an open request as the queue engine would. */
  async function perform(
    owner: { accountId: string; requestId: string },
    task: Pick<PaidTask<object>, 'perform'>,
  ): Promise<void> {
    const bus = makeLocalBus();
    const [workerId, { pool }] = [v7(), database];
    const active = await makeActiveRuns({ workerId, bus, pool, logger });
    const config = { streamWindowBytes: 1024, slowReaderSeconds: 30 };
    const settler = makeSettler(pool);
    const run = makePaidTask<object>(
      { name: 'test/files', mayRepeat: () => true, hasInputFiles: true, ...task },
      { config, workerId, pool, bus, logger, settler, active, assets },
    );
    const payload = payloadOf({ id: owner.requestId, accountId: owner.accountId });
    await run(payload, { job: { attempts: 1, created_at: new Date() } } as JobHelpers);
    active.close();
  }

  const inputOf = async (owner: { accountId: string; requestId: string }) =>
    (await files.put(owner, [draftOf('an input', { kind: 'input' })]))[0] as {
      id: string;
      contentType: string;
    };

  it('are shown to their owner alone, from the charge on, and inputs go', async () => {
    const owner = await openRequest();
    const input = await inputOf(owner);
    let duringRun: unknown;
    await perform(owner, {
      async perform(run) {
        expect(await text(await assets.openInput(run, input))).to.equal('an input');
        const made = await assets.put(
          run,
          ['first', 'second'].map((text, position) => draftOf(text, { position, details: { text } })),
        );
        duringRun = await findAsset(database.pool, made[0]?.id ?? '', owner.accountId);
        return {
          kind: 'succeeded',
          costAp: 10,
          usage: {},
          provider: 'test',
          body: '{}',
          assets: made,
          cacheKey: CACHE_KEY,
        };
      },
    });
    expect(duringRun, 'nobody has paid for it yet').to.equal(undefined);

    const { pool } = database;
    const found = await findAssetsOfRequest(pool, owner.requestId, owner.accountId, ['image', 'input']);
    expect(found.map((asset) => [asset.kind, asset.position, asset.bytes, asset.details])).to.deep.equal([
      ['image', 0, 5, { text: 'first' }],
      ['image', 1, 6, { text: 'second' }],
    ]);
    const [first] = found;
    expect(String(await store.read(assetKey(found[1] as never), { maxBytes: MAX_BYTES }))).to.equal('second');
    expect(await findAsset(pool, first?.id ?? '', owner.accountId)).to.deep.equal(first);
    expect(await findAsset(pool, first?.id ?? '', null)).to.deep.equal(first);
    expect(await findAsset(pool, first?.id ?? '', v7())).to.equal(undefined);
    expect(await findAssetsOfRequest(pool, owner.requestId, v7(), ['image'])).to.deep.equal([]);

    const list = (before?: string) =>
      listAssets(pool, { accountId: owner.accountId, kind: 'image', before, limit: 1 });
    expect(await list()).to.deep.equal([found[1]]);
    expect(await list(found[1]?.id)).to.deep.equal([first]);

    const error = await store.open(assetKey({ ...input, kind: 'input' })).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(AssetMissing);
    const inputs = await selectRows(pool, `select from app.assets where request_id = $1 and kind = 'input'`, [
      owner.requestId,
    ]);
    expect(inputs).to.deep.equal([]);

    const cached = await findCachedResult(pool, owner.accountId, CACHE_KEY);
    expect(cached).to.deep.equal({ requestId: owner.requestId, assets: found });
    expect(await findCachedResult(pool, v7(), CACHE_KEY)).to.equal(undefined);
    expect(await deleteAssets(pool, owner.accountId, [first?.id ?? ''])).to.deep.equal([first?.id]);
    expect(await findCachedResult(pool, owner.accountId, CACHE_KEY), 'a part of it').to.equal(undefined);
    expect((await findAsset(pool, first?.id ?? '', null))?.deletedAt).to.be.instanceOf(Date);
    expect(await list(found[1]?.id)).to.deep.equal([]);
  });

  it('of a task that fails are not shown, and its inputs go all the same', async () => {
    const owner = await openRequest();
    const input = await inputOf(owner);
    await perform(owner, {
      async perform(run) {
        await assets.put(run, [draftOf('never paid for')]);
        return { kind: 'failed', code: 'generation_failed' };
      },
    });
    expect(await findAssetsOfRequest(database.pool, owner.requestId, null, ['image'])).to.deep.equal([]);
    const error = await store.open(assetKey({ ...input, kind: 'input' })).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(AssetMissing);
  });

  describe('that cannot be put', () => {
    const owner = { accountId: v7(), requestId: v7() };
    const leavesNothing = async (work: () => Promise<unknown>): Promise<unknown> => {
      const before = { files: await kept(), rows: await rowCount() };
      const error = await work().then(
        () => 'nothing failed',
        (thrown: unknown) => thrown,
      );
      expect({ files: await kept(), rows: await rowCount() }).to.deep.equal(before);
      return error;
    };

    it('take the others with them', async () => {
      const endless = new PassThrough();
      endless.write('begun');
      const drafts = [
        draftOf('one'),
        draftOf('endless', { position: 1, body: endless }),
        draftOf('x'.repeat(MAX_BYTES + 1), { position: 2 }),
        draftOf('after it', { position: 3 }),
        draftOf('and more', { position: 4 }),
      ];
      expect(await leavesNothing(() => files.put(owner, drafts))).to.be.instanceOf(AssetTooLarge);
      expect(endless.destroyed).to.equal(true);
    });

    it('because the run was stopped leave nothing', async () => {
      const controller = new AbortController();
      const reason = new Error('stopped');
      const source = new PassThrough();
      const error = await leavesNothing(async () => {
        const putting = files.put(owner, [draftOf('x', { body: source })], controller.signal);
        source.write('a part');
        controller.abort(reason);
        await putting;
      });
      expect(error).to.equal(reason);
      expect(await leavesNothing(() => files.put(owner, [draftOf('x')], controller.signal))).to.equal(reason);
    });

    it('and cannot be taken back are left to housekeeping', async () => {
      const broken = { ...failing, put: () => Promise.reject(new Error('the store is away')) };
      const some = makeAssetFiles({ pool: database.pool, store: broken, retentionDays: 30, logger });
      const error = await some.put(owner, [draftOf('x')]).catch((thrown: Error) => thrown.message);
      expect(error).to.equal('the store is away');
      expect(lines.splice(0)).to.have.nested.property('[0].msg', 'files were left to housekeeping');
      const [left] = await selectRows<{ sweep_at: Date }>(
        database.pool,
        'select * from app.assets where request_id = $1',
        [owner.requestId],
      );
      expect(left?.sweep_at.getTime()).to.be.below(Date.now() + 11 * 60_000);
    });
  });

  const failing = {
    delete: () => Promise.reject(new Error('the store is away')),
  } as unknown as AssetStore;

  it('of no request are shown when they are stored', async () => {
    const accountId = v7();
    const made = await files.put({ accountId, requestId: null }, [draftOf('a face', { kind: 'character' })]);
    await storeAssets(database.pool, made);
    const found = await findAsset(database.pool, made[0]?.id ?? '', accountId);
    expect(found).to.include({ kind: 'character', requestId: null, expiresAt: null, isExpired: false });
    const again = await storeAssets(database.pool, made).catch((error: Error) => error.message);
    expect(again).to.match(/was not begun/);
  });

  describe('that are over', () => {
    const owner = { accountId: v7(), requestId: v7() };
    const letTimePass = () =>
      database.pool.query(
        `update app.assets set sweep_at = sweep_at - interval '2 hours' where state = 'writing'`,
      );

    it('are swept, whoever sweeps, and the rest stays', async () => {
      await letTimePass(); // those of the tests before
      await sweep();
      const before = await kept();
      const drafts = Array.from({ length: 40 }, (_, position) => draftOf(`file ${position}`, { position }));
      await files.put(owner, drafts);
      expect(await sweep(), 'they are an hour’s').to.equal(0);
      await letTimePass();
      const counts = await Promise.all(Array.from({ length: 4 }, sweep));
      expect(counts.reduce((sum, count) => sum + count, 0)).to.be.at.least(40);
      expect(await kept()).to.have.members(before);
      expect(await sweep()).to.equal(0);
    });

    it('do not keep each other: one that cannot be deleted stays, the others go', async () => {
      const [stuck, ...others] = await files.put(
        owner,
        Array.from({ length: 5 }, (_, position) => draftOf('x', { position })),
      );
      await letTimePass();
      const stubborn = Object.assign(Object.create(store) as AssetStore, {
        delete: (keys: readonly string[]) =>
          keys.some((key) => key.includes(stuck?.id ?? ''))
            ? Promise.reject(new Error('not this one'))
            : store.delete(keys),
      });
      expect(await sweepAssets({ pool: database.pool, store: stubborn, logger })).to.equal(others.length);
      expect(lines.splice(0)).to.have.nested.property('[0].msg', 'a file could not be deleted');
      await letTimePass();
      expect(await sweep()).to.equal(1);
    });

    it('wait for a store that is away', async () => {
      await files.put(
        owner,
        Array.from({ length: 20 }, (_, position) => draftOf('x', { position })),
      );
      await letTimePass();
      const error = await sweepAssets({ pool: database.pool, store: failing, logger }).catch(
        (thrown: Error) => thrown.message,
      );
      expect(error).to.equal('the store is away');
      lines.length = 0;
      await letTimePass();
      expect(await sweep()).to.equal(20);
    });

    const sweep = () => sweepAssets({ pool: database.pool, store, logger });
  });
});
