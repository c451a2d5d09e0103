/** What every asset store does; run against each (folder-store.test.ts, s3-store.test.ts). */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { v7 } from 'uuid';
import { assetKey } from '../../../core/assets/keys.ts';
import { AssetMissing, type AssetStore, AssetTooLarge } from '../../../core/assets/store.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const PNG = { contentType: 'image/png', maxBytes: 64 * MIB };

const newKey = (): string => assetKey({ id: v7(), kind: 'image', contentType: 'image/png' });
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** In pieces of 64 KiB, as from a network. */
function streamOf(bytes: Buffer): Readable {
  const pieces = Array.from({ length: Math.ceil(bytes.length / (64 * KIB)) }, (_, index) =>
    bytes.subarray(index * 64 * KIB, (index + 1) * 64 * KIB),
  );
  return Readable.from(pieces, { objectMode: false });
}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => 'nothing failed',
    (error: unknown) => error,
  );
}

export function describeAssetStore(name: string, store: () => AssetStore): void {
  const isMissing = async (key: string): Promise<boolean> =>
    (await failureOf(store().open(key))) instanceof AssetMissing;

  describe(`${name}, as every asset store,`, () => {
    it('gives back what was put, from a buffer and from a stream, and says its size and hash', async () => {
      // of a stream: nothing, less than one part of an upload, several parts
      for (const size of [0, 100 * KIB, 12 * MIB]) {
        const bytes = randomBytes(size);
        for (const body of [bytes, streamOf(bytes)]) {
          const key = newKey();
          const result = await store().put(key, body, PNG);
          expect(result).to.deep.equal({ bytes: size, sha256: sha256(bytes) });
          expect(sha256(await buffer(await store().open(key)))).to.equal(sha256(bytes));
          expect(sha256(await store().read(key, { maxBytes: size }))).to.equal(sha256(bytes));
        }
      }
    });

    it('replaces', async () => {
      const key = newKey();
      await store().put(key, Buffer.from('the first, which is longer'), PNG);
      await store().put(key, Buffer.from('the second'), PNG);
      expect(String(await store().read(key, { maxBytes: KIB }))).to.equal('the second');
    });

    it('gives ranges, both ends included', async () => {
      const key = newKey();
      await store().put(key, Buffer.from('0123456789'), PNG);
      const range = async (start?: number, end?: number): Promise<string> =>
        String(await buffer(await store().open(key, { start, end })));
      expect(await range(1, 1)).to.equal('1');
      expect(await range(2, 5)).to.equal('2345');
      expect(await range(7)).to.equal('789');
      expect(await range(undefined, 3)).to.equal('0123');
      expect(await range(9, 9)).to.equal('9');
    });

    it('takes as much as it may and not a byte more, and leaves nothing of what is too large', async () => {
      const bytes = randomBytes(6 * MIB);
      for (const body of [bytes, streamOf(bytes)]) {
        const key = newKey();
        const error = await failureOf(store().put(key, body, { ...PNG, maxBytes: bytes.length - 1 }));
        expect(error).to.be.instanceOf(AssetTooLarge);
        expect(await isMissing(key)).to.equal(true);
      }
      for (const body of [bytes, streamOf(bytes)]) {
        await store().put(newKey(), body, { ...PNG, maxBytes: bytes.length });
      }
    });

    it('stops reading a source that does not end once it is too large', async () => {
      let given = 0;
      const endless = new Readable({
        read() {
          given += 64 * KIB;
          this.push(Buffer.alloc(64 * KIB));
        },
      });
      const error = await failureOf(store().put(newKey(), endless, { ...PNG, maxBytes: MIB }));
      expect(error).to.be.instanceOf(AssetTooLarge);
      expect(endless.destroyed).to.equal(true);
      expect(given).to.be.below(4 * MIB);
    });

    it('leaves nothing of a source that fails halfway', async () => {
      const key = newKey();
      const source = new PassThrough();
      const putting = failureOf(store().put(key, source, PNG));
      source.write(Buffer.alloc(6 * MIB));
      source.destroy(new Error('the upstream broke'));
      expect(await putting).to.have.property('message', 'the upstream broke');
      expect(await isMissing(key)).to.equal(true);
    });

    it('stops a put when it is aborted, and leaves nothing', async () => {
      const key = newKey();
      const controller = new AbortController();
      const source = new PassThrough();
      const putting = failureOf(store().put(key, source, { ...PNG, signal: controller.signal }));
      for (let part = 0; part < 8; part += 1) {
        if (!source.write(Buffer.alloc(MIB))) await once(source, 'drain');
      }
      expect(await isMissing(key)).to.equal(true);
      const reason = new Error('the caller left');
      controller.abort(reason);
      expect(await putting).to.equal(reason);
      expect(source.destroyed).to.equal(true);
      expect(await isMissing(key)).to.equal(true);
    });

    it('does not begin a put that is aborted already', async () => {
      const key = newKey();
      const reason = new Error('too late');
      for (const body of [Buffer.from('x'), Readable.from(['x'])]) {
        const putting = store().put(key, body, { ...PNG, signal: AbortSignal.abort(reason) });
        expect(await failureOf(putting)).to.equal(reason);
        if (body instanceof Readable) expect(body.destroyed).to.equal(true);
      }
      expect(await isMissing(key)).to.equal(true);
    });

    it('stops a reader when it is aborted', async () => {
      const key = newKey();
      await store().put(key, randomBytes(8 * MIB), PNG);
      const controller = new AbortController();
      const stream = await store().open(key, { signal: controller.signal });
      await once(stream, 'readable');
      controller.abort();
      const error = (await failureOf(buffer(stream))) as Error;
      expect(error.name).to.equal('AbortError');
    });

    it('says of what is not there that it is missing', async () => {
      const key = newKey();
      expect(await failureOf(store().open(key))).to.be.instanceOf(AssetMissing);
      expect(await failureOf(store().read(key, { maxBytes: 1 }))).to.be.instanceOf(AssetMissing);
      // a part of a key is none
      await store().put(key, Buffer.from('x'), PNG);
      expect(await isMissing('image')).to.equal(true);
      expect(await isMissing(`${key}/further`)).to.equal(true);
    });

    it('does not read whole what is larger than the reader can take', async () => {
      const key = newKey();
      await store().put(key, Buffer.alloc(11), PNG);
      expect(await failureOf(store().read(key, { maxBytes: 10 }))).to.be.instanceOf(AssetTooLarge);
    });

    it('deletes, also what is not there, and leaves the others', async () => {
      const keys = Array.from({ length: 20 }, newKey);
      const [kept = '', ...deleted] = keys;
      for (const key of keys) await store().put(key, Buffer.from(key), PNG);
      await store().delete([...deleted, newKey()]);
      await store().delete([]);
      for (const key of deleted) expect(await isMissing(key)).to.equal(true);
      expect(String(await store().read(kept, { maxBytes: KIB }))).to.equal(kept);
    });

    it('takes no key that could lead elsewhere', async () => {
      const keys = [
        '',
        '/',
        '.',
        '..',
        '../outside',
        'image/../../outside',
        'image/..',
        'image/./x',
        'image//x',
        '/etc/passwd',
        'image/x/',
        '.unfinished/x',
        'image/.hidden',
        'image\\..\\x',
        'image/%2e%2e/x',
        'image/x\0.png',
        'image/x\n',
        'image/é',
        'x'.repeat(256),
      ];
      for (const key of keys) {
        for (const work of [
          () => store().put(key, Buffer.from('x'), PNG),
          () => store().open(key),
          () => store().read(key, { maxBytes: 1 }),
          () => store().delete([key]),
        ]) {
          const error = await failureOf(Promise.resolve().then<unknown>(work));
          expect((error as Error).message, JSON.stringify(key)).to.match(/^not a key/);
        }
      }
    });

    it('says that it can be written to', async () => {
      await store().check();
    });
  });
}
