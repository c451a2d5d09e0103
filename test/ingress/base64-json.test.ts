/** JSON with files in it: the same text as JSON.stringify would make of it all, its length known, its files read bit by bit. */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { v7 } from 'uuid';
import { assetKey } from '../../core/assets/keys.ts';
import { AssetMissing, type AssetStore } from '../../core/assets/store.ts';
import { base64Json, type EmbeddedFile } from '../../ingress/base64-json.ts';

/** Gives files in parts of `partBytes`. */
function storeOf(files: ReadonlyMap<string, Buffer>, partBytes: number): AssetStore {
  return {
    open: (key: string) => {
      const bytes = files.get(key);
      if (bytes === undefined) return Promise.reject(new AssetMissing(key));
      const parts: Buffer[] = [];
      for (let start = 0; start < bytes.length; start += partBytes)
        parts.push(bytes.subarray(start, start + partBytes));
      return Promise.resolve(Readable.from(parts, { objectMode: false }));
    },
  } as unknown as AssetStore;
}

function makeFile(bytes: Buffer): EmbeddedFile & { readonly content: Buffer } {
  return { id: v7(), kind: 'image', contentType: 'image/png', bytes: bytes.length, content: bytes };
}

const never = new AbortController().signal;

describe('JSON with files in it', () => {
  for (const partBytes of [1, 2, 3, 4, 7, 65_536]) {
    it(`is what JSON.stringify makes of it all, read ${partBytes} bytes at a time`, async () => {
      const files = [0, 1, 2, 3, 100, 1000].map((length) => makeFile(randomBytes(length)));
      const store = storeOf(new Map(files.map((file) => [assetKey(file), file.content])), partBytes);
      const write = (embed: (file: EmbeddedFile) => string) => ({
        prompt: 'ä "quoted" ✓',
        data: files.map((file) => ({ b64_json: embed(file) })),
      });
      const json = base64Json(write);
      let text = '';
      for await (const part of json.chunks(store, never)) text += part;
      const whole = write((file) => files.find(({ id }) => id === file.id)?.content.toString('base64') ?? '');
      expect(text).to.equal(JSON.stringify(whole));
      expect(Buffer.byteLength(text)).to.equal(json.bytes);
    });
  }

  it('gives nothing when its first file is missing', async () => {
    const json = base64Json((embed) => ({ data: embed(makeFile(randomBytes(10))) }));
    let failure: unknown;
    try {
      for await (const part of json.chunks(storeOf(new Map(), 100), never)) expect.fail(`gave ${part}`);
    } catch (error) {
      failure = error;
    }
    expect(failure).to.be.instanceOf(AssetMissing);
  });

  it('breaks off when a file is not of the length that was promised', async () => {
    const file = makeFile(randomBytes(10));
    const store = storeOf(new Map([[assetKey(file), file.content.subarray(0, 9)]]), 100);
    const json = base64Json((embed) => ({ data: embed(file) }));
    let failure: unknown;
    try {
      for await (const _ of json.chunks(store, never)) {
        // read to its end
      }
    } catch (error) {
      failure = error;
    }
    expect(String(failure)).to.include('9 bytes instead of 10');
  });
});
