/** The S3 store: as every store, against a real server in a process of its own. */
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { makeAssetStore } from '../../../core/assets/make-store.ts';
import { AssetMissing, type AssetStore } from '../../../core/assets/store.ts';
import { startS3, type TestS3 } from '../../helpers/s3.ts';
import { describeAssetStore } from './store-conformance.ts';

const PNG = { contentType: 'image/png', maxBytes: 1024 };

describe('the S3 store', function () {
  this.timeout(60_000);
  let s3: TestS3;
  let store: AssetStore;
  const makeStore = (assetStore: string): Promise<AssetStore> =>
    makeAssetStore({ assetStore, dataDir: '/nowhere' });

  before('start a server', async () => {
    s3 = await startS3();
    store = await makeStore(s3.address('some/prefix'));
  });
  after(async () => {
    await store?.close();
    await s3?.stop();
  });

  describeAssetStore('S3', () => store);

  it('keeps its files below its prefix', async () => {
    const whole = await makeStore(s3.address(''));
    await store.put('image/x.png', Buffer.from('x'), PNG);
    expect(String(await whole.read('some/prefix/image/x.png', { maxBytes: 1 }))).to.equal('x');
    const error = await whole.open('image/x.png').catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(AssetMissing);
    await whole.close();
  });

  it('says that it cannot be written to', async () => {
    const other = await makeStore(s3.address('').replace('//assets/', '//nobodys/'));
    const error = await other.check().catch((thrown: unknown) => thrown);
    expect(error).to.have.property('name', 'NoSuchBucket');
    await other.close();
  });
});

describe('ASSET_STORE', () => {
  const problemOf = async (assetStore: string): Promise<string> =>
    await makeAssetStore({ assetStore, dataDir: '/nowhere' }).then(
      () => 'none',
      (error: Error) => error.message,
    );

  for (const address of [
    'assets',
    '/var/assets',
    's3:',
    's3://',
    'https://x',
    'file://host/x',
    's3://key:secret@x/y',
  ]) {
    it(`is not: ${address}`, async () => {
      expect(await problemOf(address)).to.match(/^ASSET_STORE must be /);
    });
  }

  it('names what it does not know', async () => {
    expect(await problemOf('s3://bucket/x?endpiont=http://x')).to.match(
      /^ASSET_STORE has an unknown option endpiont/,
    );
    expect(await problemOf('s3://bucket/x?endpoint=x')).to.match(/^ASSET_STORE must name its endpoint/);
  });
});
