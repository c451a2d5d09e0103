/** Files over HTTP: whole, in ranges, not again, at the reader's pace, and not at all when they are over. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import Koa from 'koa';
import { after, afterEach, before, describe, it } from 'mocha';
import { pino } from 'pino';
import { v7 } from 'uuid';
import { FolderStore } from '../../core/assets/folder-store.ts';
import { assetKey } from '../../core/assets/keys.ts';
import type { AssetStore } from '../../core/assets/store.ts';
import { serveAsset } from '../../ingress/assets.ts';
import type { State } from '../../ingress/context.ts';
import type { Asset } from '../../ingress/data/assets.ts';
import { errors } from '../../ingress/middleware/errors.ts';
import { language } from '../../ingress/middleware/language.ts';
import { requestId } from '../../ingress/middleware/request-id.ts';
import { eventually } from '../helpers/service.ts';

const MIB = 1024 * 1024;
const TEXT = '0123456789';

describe('a file over HTTP', () => {
  let folder: string;
  let server: Server;
  let origin: string;
  let served: Asset | undefined;
  let store: AssetStore;
  let slowReaderSeconds = 30;
  const logged: Record<string, unknown>[] = [];
  const logger = pino({ level: 'error' }, { write: (line) => logged.push(JSON.parse(line)) });

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-assets-'));
    const app = new Koa<State>();
    app.silent = true;
    app.use(requestId);
    app.use(language);
    app.use(errors(logger));
    app.use(async (ctx) => {
      const services = { files: { store }, logger, config: { slowReaderSeconds }, now: () => new Date() };
      await serveAsset(ctx, services as never, served);
    });
    server = createServer(app.callback());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true, force: true });
  });
  afterEach(() => {
    expect(logged.splice(0)).to.deep.equal([]);
    slowReaderSeconds = 30;
  });

  async function keep(bytes: Buffer, changes: Partial<Asset> = {}): Promise<Asset> {
    const asset: Asset = {
      id: v7(),
      kind: 'image',
      contentType: 'image/png',
      accountId: v7(),
      requestId: v7(),
      position: 0,
      bytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
      details: {},
      isSelected: false,
      createdAt: new Date('2026-01-02T03:04:05Z'),
      expiresAt: new Date(Date.now() + 30 * 86_400_000),
      deletedAt: null,
      isExpired: false,
      ...changes,
    };
    store = new FolderStore(folder);
    await store.put(assetKey(asset), bytes, { contentType: asset.contentType, maxBytes: bytes.length });
    served = asset;
    return asset;
  }

  const ask = (headers: Record<string, string> = {}, method = 'GET') => fetch(origin, { method, headers });
  const codeOf = async (response: Response): Promise<string> =>
    ((await response.json()) as { error: { code: string } }).error.code;

  it('comes whole, with its type, length and hash, for its owner’s cache alone', async () => {
    const asset = await keep(Buffer.from(TEXT));
    const response = await ask();
    expect(response.status).to.equal(200);
    expect(await response.text()).to.equal(TEXT);
    expect(Object.fromEntries(response.headers)).to.include({
      'content-type': 'image/png',
      'content-length': '10',
      etag: `"${asset.sha256}"`,
      'accept-ranges': 'bytes',
      'cache-control': 'private, max-age=3600',
      'last-modified': 'Fri, 02 Jan 2026 03:04:05 GMT',
      'x-content-type-options': 'nosniff',
      'content-disposition': `inline; filename="${asset.id}.png"`,
    });
  });

  it('is cached no longer than it is kept', async () => {
    await keep(Buffer.from(TEXT), { expiresAt: new Date(Date.now() + 60_500) });
    expect((await ask()).headers.get('cache-control')).to.match(/^private, max-age=(59|60)$/);
    await keep(Buffer.from(TEXT), { expiresAt: null });
    expect((await ask()).headers.get('cache-control')).to.equal('private, max-age=3600');
  });

  it('does not come again to whoever has it', async () => {
    const { sha256 } = await keep(Buffer.from(TEXT));
    for (const known of [`"${sha256}"`, `W/"${sha256}"`, `"x", "${sha256}"`, '*']) {
      const response = await ask({ 'if-none-match': known });
      expect(response.status, known).to.equal(304);
      expect(await response.text()).to.equal('');
      expect(response.headers.get('etag')).to.equal(`"${sha256}"`);
    }
    expect((await ask({ 'if-none-match': '"another"' })).status).to.equal(200);
  });

  const RANGES: readonly (readonly [range: string, status: number, body: string, contentRange?: string])[] = [
    ['bytes=0-0', 206, '0', 'bytes 0-0/10'],
    ['bytes=2-5', 206, '2345', 'bytes 2-5/10'],
    ['bytes=7-', 206, '789', 'bytes 7-9/10'],
    ['bytes=5-99', 206, '56789', 'bytes 5-9/10'],
    ['bytes=-3', 206, '789', 'bytes 7-9/10'],
    ['bytes=-99', 206, TEXT, 'bytes 0-9/10'],
    ['Bytes=9-9', 206, '9', 'bytes 9-9/10'],
    // not one range of bytes: the whole file
    ['bytes=0-1,3-4', 200, TEXT],
    ['bytes=5-2', 200, TEXT],
    ['bytes=-', 200, TEXT],
    ['bytes=a-b', 200, TEXT],
    ['seconds=1-2', 200, TEXT],
  ];
  for (const [range, status, body, contentRange] of RANGES) {
    it(`answers ${range} with ${contentRange ?? 'everything'}`, async () => {
      await keep(Buffer.from(TEXT));
      const response = await ask({ range });
      expect(response.status).to.equal(status);
      expect(await response.text()).to.equal(body);
      expect(response.headers.get('content-range')).to.equal(contentRange ?? null);
      expect(response.headers.get('content-length')).to.equal(String(body.length));
    });
  }

  for (const range of ['bytes=10-', 'bytes=10-20', 'bytes=-0', 'bytes=99999999999999999999-']) {
    it(`refuses ${range}, which is outside of it`, async () => {
      await keep(Buffer.from(TEXT));
      const response = await ask({ range });
      expect(response.status).to.equal(416);
      expect(response.headers.get('content-range')).to.equal('bytes */10');
      expect(response.headers.get('etag')).to.equal(null);
      expect(await codeOf(response)).to.equal('invalid_parameter');
    });
  }

  it('comes whole when it is not the file of which the caller has a part', async () => {
    const { sha256 } = await keep(Buffer.from(TEXT));
    const same = await ask({ range: 'bytes=5-', 'if-range': `"${sha256}"` });
    expect([same.status, await same.text()]).to.deep.equal([206, '56789']);
    for (const other of ['"another"', `W/"${sha256}"`, 'Fri, 02 Jan 2026 03:04:05 GMT']) {
      const response = await ask({ range: 'bytes=5-', 'if-range': other });
      expect([response.status, await response.text()]).to.deep.equal([200, TEXT]);
    }
  });

  it('is described to HEAD without being opened', async () => {
    await keep(Buffer.from(TEXT));
    store = { open: () => Promise.reject(new Error('opened')) } as never;
    const response = await ask({}, 'HEAD');
    expect([response.status, response.headers.get('content-length')]).to.deep.equal([200, '10']);
  });

  it('without a byte comes without a byte, and has no range', async () => {
    await keep(Buffer.alloc(0));
    const response = await ask();
    expect([response.status, await response.text()]).to.deep.equal([200, '']);
    expect((await ask({ range: 'bytes=0-' })).status).to.equal(416);
  });

  it('is not found when there is none', async () => {
    served = undefined;
    const response = await ask();
    expect([response.status, await codeOf(response)]).to.deep.equal([404, 'not_found']);
  });

  it('is expired after its time, and gone when it was deleted, also to whoever has it', async () => {
    const headers = { 'if-none-match': '*' };
    await keep(Buffer.from(TEXT), { isExpired: true });
    const expired = await ask(headers);
    expect([expired.status, await codeOf(expired)]).to.deep.equal([410, 'expired']);
    await keep(Buffer.from(TEXT), { isExpired: true, deletedAt: new Date() });
    const gone = await ask(headers);
    expect([gone.status, await codeOf(gone)]).to.deep.equal([410, 'gone']);
    expect(gone.headers.get('cache-control')).to.equal(null);
  });

  it('that the store has lost is gone, and an alarm', async () => {
    const asset = await keep(Buffer.from(TEXT));
    await store.delete([assetKey(asset)]);
    const response = await ask();
    expect([response.status, await codeOf(response)]).to.deep.equal([410, 'gone']);
    expect(response.headers.get('etag')).to.equal(null);
    expect(logged.splice(0)).to.have.nested.property('[0].msg', 'a file is not in the store');
  });

  it('that cannot be read to its end cuts the connection, so that nobody takes a part for the whole', async () => {
    await keep(randomBytes(MIB));
    store = {
      open: () =>
        Promise.resolve(
          Readable.from(
            (function* () {
              yield Buffer.alloc(MIB / 2);
              throw new Error('the disk broke');
            })(),
            { objectMode: false },
          ),
        ),
    } as never;
    const error = await ask()
      .then((response) => response.arrayBuffer())
      .catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Error);
    await eventually(() => expect(logged).to.have.length(1));
    expect(logged.splice(0)).to.have.nested.property('[0].msg', 'a file could not be read to its end');
  });

  /** A reader that has taken the head and nothing more. */
  function startReading(): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      get(origin, (response) => resolve(response.pause())).once('error', reject);
    });
  }

  /** A file without end, and how much of it was taken. */
  async function keepEndless(): Promise<{
    readonly taken: () => number;
    readonly isDestroyed: () => boolean;
  }> {
    await keep(Buffer.from(TEXT), { bytes: 1024 * MIB });
    let taken = 0;
    const stream = new Readable({
      read() {
        taken += 64 * 1024;
        this.push(Buffer.alloc(64 * 1024));
      },
    });
    store = { open: () => Promise.resolve(stream) } as never;
    return { taken: () => taken, isDestroyed: () => stream.destroyed };
  }

  it('is read at the reader’s pace: what is not taken is not in memory', async () => {
    const file = await keepEndless();
    const response = await startReading();
    // what the kernel takes on both ends; then nothing moves until the reader does
    let before = -1;
    await eventually(() => {
      const now = file.taken();
      const isStill = now === before;
      before = now;
      expect(isStill).to.equal(true);
    });
    expect(before).to.be.below(32 * MIB);
    response.destroy();
    await eventually(() => expect(file.isDestroyed()).to.equal(true));
  });

  it('is let go of when its reader takes nothing for long', async () => {
    slowReaderSeconds = 0.2;
    const file = await keepEndless();
    const response = await startReading();
    response.on('error', () => {});
    await eventually(() => expect(file.isDestroyed()).to.equal(true));
    response.destroy();
  });
});
