/**
 * Two webs and two workers, as processes of their own, with one S3-compatible store between them. What one makes another shows;
 * what a process that was killed had half written is never seen, and a picture is charged once whatever ended while it was made.
 */
import { fail } from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { after, before, describe, it } from 'mocha';
import { pino } from 'pino';
import { assetKey } from '../../core/assets/keys.ts';
import { makeAssetStore } from '../../core/assets/make-store.ts';
import { AssetMissing, type AssetStore } from '../../core/assets/store.ts';
import { inspectPicture } from '../../core/pictures.ts';
import { sweepAssets } from '../../workers/tasks/maintenance/assets.ts';
import { makeAccount, makeKey, selectOne, selectRows } from '../helpers/database.ts';
import { type GateProxy, startGateProxy } from '../helpers/gate-proxy.ts';
import { IMAGE_MODEL, insertImageModel } from '../helpers/image-models.ts';
import { type MockUpstream, startMockUpstream } from '../helpers/mock-upstream.ts';
import { makePng } from '../helpers/pictures.ts';
import { runToEnd, type Stack, type Supervised, startStack, until } from '../helpers/processes.ts';
import { startS3, type TestS3 } from '../helpers/s3.ts';

const BALANCE_AP = 10_000;
const PRICE_AP = 10;
/** A worker's silence, its rescue, and the pictures made again by another. */
const FINISHED_WITHIN_MS = 40_000;
/** No frame carries a picture: what goes through Redis for one is names and numbers. */
const MAX_FRAME_BYTES = 4096;
const BODY = { model: IMAGE_MODEL, size: '64x64', quality: 'low' };
const PUT_OF_PICTURE = /^PUT \S*\/image\//;

type Json = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly status: string;
  readonly data: readonly { readonly b64_json: string; readonly candidate_id: string }[];
  readonly error?: { readonly code: string };
};

describe('images of two webs and two workers with one store', function () {
  this.timeout(120_000);
  this.slow(60_000);

  let upstream: MockUpstream;
  let s3: TestS3;
  let proxy: GateProxy;
  let store: AssetStore;
  let stack: Stack;
  let accountId: string;
  let secret: string;

  before('start the service', async function () {
    upstream = await startMockUpstream();
    s3 = await startS3();
    proxy = await startGateProxy(s3.port);
    const assetStore = s3.address('shared', proxy.port);
    const started = await startStack({
      webs: 2,
      workers: 2,
      env: {
        ASSET_STORE: assetStore,
        AWS_ACCESS_KEY_ID: process.env.AWS_ACCESS_KEY_ID,
        AWS_SECRET_ACCESS_KEY: process.env.AWS_SECRET_ACCESS_KEY,
        IMAGE_TIMEOUT_SECONDS: '60',
      },
      prepare: async (pool) => {
        await pool.query(`insert into app.providers (name, kind, base_url) values ('mock', 'openai', $1)`, [
          upstream.baseUrl,
        ]);
        await insertImageModel(pool, { id: IMAGE_MODEL, provider: 'mock' });
        accountId = await makeAccount(pool, { purchasedAp: BALANCE_AP });
        secret = (await makeKey(pool, accountId)).secret;
      },
    });
    if (started === undefined) this.skip();
    stack = started;
    store = await makeAssetStore({ assetStore, dataDir: '/nowhere' });
  });

  after('stop the service', async () => {
    await stack?.stop();
    await store?.close();
    await proxy?.close();
    await s3?.stop();
    await upstream?.close();
  });

  const ask = (web: number, path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${stack.origins[web] ?? fail('no such web')}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${secret}`, ...init.headers },
      signal: AbortSignal.timeout(60_000),
    });

  const generate = (web: number, fields: object, headers: Record<string, string> = {}): Promise<Response> =>
    ask(web, '/v1/images/generations', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ ...BODY, cache: false, ...fields }),
    });

  /** The end of a request, as a web tells it. */
  async function finished(web: number, id: string): Promise<Json> {
    let last: Json | undefined;
    await until(
      async () => {
        const response = await ask(web, `/v1/images/status/${id}`);
        last = (await response.json()) as Json;
        return response.status === 200;
      },
      FINISHED_WITHIN_MS,
      'the end of the request',
    );
    return last ?? fail('no answer');
  }

  async function chargesOf(id: string): Promise<number[]> {
    const rows = await selectRows<{ ap: number }>(
      stack.pool,
      'select amount_ap as ap from app.ledger_entries where request_id = $1',
      [id],
    );
    return rows.map(({ ap }) => ap);
  }

  interface Row {
    readonly id: string;
    readonly kind: 'image' | 'partial' | 'input';
    readonly contentType: string;
    readonly state: string;
  }

  const filesOf = (id: string): Promise<Row[]> =>
    selectRows<Row>(
      stack.pool,
      'select id, kind, content_type as "contentType", state from app.assets where request_id = $1 order by id',
      [id],
    );

  async function stateOf(id: string): Promise<string> {
    const text = 'select state from app.requests where id = $1';
    return (await selectOne<{ state: string }>(stack.pool, text, [id])).state;
  }

  async function expectSwept(row: Row): Promise<void> {
    await stack.pool.query('update app.assets set sweep_at = now() where id = $1', [row.id]);
    await sweepAssets({ pool: stack.pool, store, logger: pino({ level: 'silent' }) });
    expect(await isInStore(row)).to.equal(false);
  }

  /** Not through any web, under any name it could have. */
  async function expectNotShown(...ids: readonly string[]): Promise<void> {
    for (const web of [0, 1]) {
      for (const id of ids) {
        for (const path of [`file/${id}`, `candidate/${id}`]) {
          const response = await ask(web, `/v1/images/${path}`);
          expect(response.status, `${path} of web ${web}`).to.equal(404);
          await response.arrayBuffer();
        }
      }
    }
  }

  async function isInStore(row: Row): Promise<boolean> {
    try {
      (await store.open(assetKey(row))).destroy();
      return true;
    } catch (error) {
      if (error instanceof AssetMissing) return false;
      throw error;
    }
  }

  /** The worker at the other end of this connection. */
  function workerAt(port: number): Supervised {
    const isIts = ({ pid }: Supervised) => pid !== undefined && hasSocket(pid, port);
    return stack.workers.find(isIts) ?? fail(`no worker has port ${port}`);
  }

  async function expectCleanBooks(): Promise<void> {
    const { code, stdout } = await runToEnd('bin/svc.ts', { DATABASE_URL: stack.postgres.url }, [
      'ledger',
      'check',
      '--json',
    ]);
    expect(code, stdout).to.equal(0);
    expect(JSON.parse(stdout)).to.include({ open_holds: 0, stale_holds: 0, drift_ap: 0 });
  }

  it('are made from what came to one web and read through the other', async () => {
    for (const [asked, other] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const form = new FormData();
      for (const [name, value] of Object.entries({ ...BODY, prompt: `Asked of web ${asked}` }))
        form.set(name, value);
      form.set('image', new Blob([new Uint8Array(makePng(64, 64))]), 'a.png');
      const response = await ask(asked, '/v1/images/edits', { method: 'POST', body: form });
      const made = (await response.json()) as Json;
      expect(response.status, JSON.stringify(made)).to.equal(200);

      const file = await ask(other, `/v1/images/file/${made.id}`);
      expect(file.status).to.equal(200);
      const bytes = Buffer.from(await file.arrayBuffer());
      expect(bytes.toString('base64')).to.equal(made.data[0]?.b64_json);
      expect(await inspectPicture(bytes)).to.include({ width: 64, height: 64, format: 'png' });
      expect((await finished(other, made.id)).data[0]?.b64_json).to.equal(made.data[0]?.b64_json);
      expect(await chargesOf(made.id)).to.deep.equal([-PRICE_AP]);
      const [picture] = (await filesOf(made.id)).filter(({ kind }) => kind === 'image');
      expect(await isInStore(picture ?? fail('no row'))).to.equal(true);
    }
  });

  it('are streamed with partial pictures, of which Redis carries the names only', async () => {
    const redis = new Redis(stack.redis.url);
    const frames: string[] = [];
    redis.on('pmessage', (_pattern, _channel, message: string) => frames.push(message));
    await redis.psubscribe('*');
    try {
      const response = await generate(0, { prompt: 'In steps', stream: true, partial_images: 2 });
      const events = await readEvents(response);
      const types = events.map(({ type }) => type.replace('image_generation.', ''));
      expect(types).to.deep.equal(['partial_image', 'partial_image', 'completed']);
      const pictures = events.map(({ b64_json: text }) => Buffer.from(text, 'base64'));
      for (const picture of pictures) expect(await inspectPicture(picture)).to.include({ width: 64 });
      expect(new Set(pictures.map((picture) => picture.toString('base64'))).size).to.equal(3);
      const id = response.headers.get('x-svc-image-id') ?? '';
      const file = await ask(1, `/v1/images/file/${id}`);
      expect(Buffer.from(await file.arrayBuffer()).equals(pictures[2] ?? Buffer.alloc(0))).to.equal(true);
      const ours = frames.filter((frame) => frame.includes(id));
      expect(ours.length).to.be.greaterThan(0);
      for (const frame of ours) expect(frame.length).to.be.lessThan(MAX_FRAME_BYTES);
    } finally {
      redis.disconnect();
    }
  });

  it('of a worker killed in the middle of a write are never seen, and are made again by another', async () => {
    const held = proxy.holdNext(PUT_OF_PICTURE);
    const { id } = (await (
      await generate(0, { prompt: 'Killed' }, { prefer: 'respond-async' })
    ).json()) as Json;
    const { senderPort, gone } = await held;
    const [half, ...more] = await filesOf(id);
    if (half === undefined || more.length > 0) fail('one file is being written');
    expect(half.state).to.equal('writing');
    await expectNotShown(id, half.id);
    await Promise.all([workerAt(senderPort).kill(), gone]);
    await expectNotShown(id, half.id);

    const { status, data } = await finished(1, id);
    expect(status).to.equal('succeeded');
    expect(data).to.have.length(1);
    expect(data[0]?.candidate_id).to.not.equal(half.id);
    expect(await inspectPicture(Buffer.from(data[0]?.b64_json ?? '', 'base64'))).to.include({ width: 64 });
    expect(await chargesOf(id)).to.deep.equal([-PRICE_AP]);
    await expectNotShown(half.id);
    // what a store makes of half a request is its own affair: an hour later nothing is left of it
    await expectSwept(half);
    await expectCleanBooks();
  });

  it('of a stream whose worker was killed in the middle of a write come to nothing, and cost nothing', async () => {
    const held = proxy.holdNext(PUT_OF_PICTURE);
    const response = await generate(1, { prompt: 'Killed', stream: true, partial_images: 1 });
    const id = response.headers.get('x-svc-image-id') ?? '';
    const { senderPort, gone } = await held;
    await until(async () => (await stateOf(id)) === 'running', 5000, 'the mark of a run');
    await Promise.all([workerAt(senderPort).kill(), gone]);
    const events = await readEvents(response);
    expect(events.map(({ type }) => type)).to.deep.equal(['image_generation.partial_image', 'error']);
    const { status, error } = await finished(0, id);
    expect([status, error?.code]).to.deep.equal(['failed', 'generation_failed']);
    const rows = await filesOf(id);
    expect(rows.every(({ kind, state }) => kind === 'partial' || state === 'writing')).to.equal(true);
    await expectNotShown(id, ...rows.filter(({ kind }) => kind === 'image').map((row) => row.id));
    expect(await chargesOf(id)).to.deep.equal([]);
    await expectCleanBooks();
  });

  it('of a stream whose web was killed are finished, and collected through the other', async () => {
    const answer = Promise.withResolvers<void>();
    upstream.programNext({ chunkGate: () => answer.promise });
    const response = await generate(0, { prompt: 'Left alone', stream: true, partial_images: 1 });
    const id = response.headers.get('x-svc-image-id') ?? '';
    await readUntil(response, 'image_generation.partial_image');
    await stack.webs[0]?.kill();
    await sleep(500);
    answer.resolve();
    const { status, data } = await finished(1, id);
    expect(status).to.equal('succeeded');
    const bytes = Buffer.from(data[0]?.b64_json ?? '', 'base64');
    expect(await inspectPicture(bytes)).to.include({ width: 64, height: 64 });
    expect(await chargesOf(id)).to.deep.equal([-PRICE_AP]);
    await until(() => stack.webs[0]?.isRunning === true, 5000, 'the restart of the web');
    await until(async () => (await ask(0, `/v1/images/file/${id}`)).ok, 10_000, 'the picture through it');
    await expectCleanBooks();
  });

  it('are charged exactly as often as they were given', async () => {
    const { charged, succeeded } = await selectOne<{ charged: number; succeeded: number }>(
      stack.pool,
      `select (select count(*) from app.ledger_entries where request_id is not null) as charged,
         (select count(*) from app.requests where state = 'succeeded') as succeeded`,
    );
    expect(charged).to.equal(succeeded);
  });
});

interface StreamEvent {
  readonly type: string;
  readonly b64_json: string;
}

async function readEvents(response: Response): Promise<StreamEvent[]> {
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: '));
  return lines.map((line) => {
    const event = JSON.parse(line.slice('data: '.length)) as StreamEvent & { error?: unknown };
    return event.error === undefined ? event : { type: 'error', b64_json: '' };
  });
}

/** The connection is cut later: what comes then is of no interest. */
async function readUntil(response: Response, words: string): Promise<void> {
  const reader = response.body?.getReader() ?? fail('no body');
  let text = '';
  while (!text.includes(words)) {
    const { value, done } = await reader.read();
    if (done) fail(`the stream ended before ${words}`);
    text += Buffer.from(value).toString('latin1');
  }
  void reader.closed.catch(() => {});
}

/** Whether a process has the socket with this local port: /proc/net/tcp names sockets, /proc/<pid>/fd says whose they are. */
function hasSocket(pid: number, port: number): boolean {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const line = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((entry) => entry.trim().split(/\s+/))
    .find((fields) => fields[1]?.endsWith(local) === true);
  const socket = `socket:[${line?.[9] ?? ''}]`;
  return readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`) === socket;
    } catch {
      return false;
    }
  });
}
