/** The folder store: as every store, and what only files on a disk have. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { FolderStore } from '../../../core/assets/folder-store.ts';
import { makeAssetStore } from '../../../core/assets/make-store.ts';
import { AssetMissing } from '../../../core/assets/store.ts';
import { eventually } from '../../helpers/service.ts';
import { describeAssetStore } from './store-conformance.ts';

const PNG = { contentType: 'image/png', maxBytes: 1024 * 1024 };
const KEY = 'image/2026/01/02/0198c000-0000-7000-8000-00000000000a.png';

/** Puts a file that never ends, and says so once a part of it has been written. */
const ENDLESS_PUT = `
  import { Readable } from 'node:stream';
  import { FolderStore } from '${join(import.meta.dirname, '..', '..', '..', 'core', 'assets', 'folder-store.ts')}';
  let given = 0;
  const body = new Readable({
    read() {
      given += 1;
      if (given === 64) process.stdout.write('writing');
      if (given < 64) this.push(Buffer.alloc(65536, 'x'));
    },
  });
  setInterval(() => {}, 1000); // lives until it is killed
  await new FolderStore(process.argv[1]).put(process.argv[2], body, { contentType: 'image/png', maxBytes: 2 ** 40 });
`;

describe('the folder store', () => {
  let folder: string;
  let root: string;
  let store: FolderStore;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-assets-'));
    root = join(folder, 'assets');
    store = new FolderStore(root);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  describeAssetStore('a folder', () => store);

  async function killInTheMiddle(): Promise<void> {
    const child = spawn(process.execPath, ['--input-type=module', '-e', ENDLESS_PUT, '--', root, KEY], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(child.stdout, 'data');
    const unfinished = await eventually(async () => {
      const [name = ''] = await readdir(join(root, '.unfinished'));
      const file = join(root, '.unfinished', name);
      expect((await stat(file)).size).to.be.above(1024 * 1024);
      return file;
    });
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    // what was written is there to be found, or this shows nothing
    expect((await stat(unfinished)).size).to.be.above(1024 * 1024);
  }

  it('shows nothing of a file whose writer was killed, and removes what it left when it is old', async () => {
    await killInTheMiddle();
    const error = await store.open(KEY).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(AssetMissing);

    await store.removeLeftovers();
    const [name = ''] = await readdir(join(root, '.unfinished'));
    expect(name, 'somebody may be writing it').to.not.equal('');
    const twoHoursAgo = new Date(Date.now() - 2 * 60 * 60 * 1000);
    await utimes(join(root, '.unfinished', name), twoHoursAgo, twoHoursAgo);
    const again = await makeAssetStore({ assetStore: `file://${root}`, dataDir: '/nowhere' });
    expect(await readdir(join(root, '.unfinished'))).to.deep.equal([]);
    await again.put(KEY, Buffer.from('whole'), PNG);
    expect(String(await store.read(KEY, { maxBytes: 100 }))).to.equal('whole');
  });

  it('leaves nothing unfinished behind, whatever fails', async () => {
    expect(await readdir(join(root, '.unfinished'))).to.deep.equal([]);
  });

  it('gives the first byte alone', async () => {
    await store.put(KEY, Buffer.from('0123456789'), PNG);
    expect(String(await buffer(await store.open(KEY, { start: 0, end: 0 })))).to.equal('0');
  });

  it('shows one of the files that are put under one key at once, never a mixture', async () => {
    const files = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(512 * 1024));
    const puts = files.map((file) =>
      store.put(KEY, Readable.from(file.match(/.{1,4096}/g) ?? [], { objectMode: false }), PNG),
    );
    await Promise.all(puts);
    expect(files).to.include(String(await store.read(KEY, PNG)));
  });

  it('keeps a file where its key says', async () => {
    await store.put(KEY, Buffer.from('here'), PNG);
    expect(await readFile(join(root, KEY), 'utf8')).to.equal('here');
  });

  it('makes no folder before it has something to keep', async () => {
    const unused = join(folder, 'unused');
    const one = await makeAssetStore({ assetStore: undefined, dataDir: unused });
    expect(await stat(unused).catch((error: NodeJS.ErrnoException) => error.code)).to.equal('ENOENT');
    await one.check();
    expect((await stat(join(unused, 'assets'))).isDirectory()).to.equal(true);
  });

  it('says that it cannot be written to', async () => {
    const file = join(folder, 'a-file');
    await writeFile(file, 'not a folder');
    const error = await new FolderStore(join(file, 'below')).check().catch((thrown: unknown) => thrown);
    expect(error).to.have.property('code', 'ENOTDIR');
  });

  it('says what is wrong with a file that is there and cannot be read', async () => {
    if (process.getuid?.() === 0) {
      // root may read everything: a circle of links is as unreadable
      await mkdir(join(root, 'image'), { recursive: true });
      await symlink('circle.png', join(root, 'image', 'circle.png'));
      const error = await store.open('image/circle.png').catch((thrown: unknown) => thrown);
      expect(error).to.have.property('code', 'ELOOP');
      return;
    }
    await store.put(KEY, Buffer.from('x'), PNG);
    await chmod(join(root, KEY), 0);
    const error = await store.open(KEY).catch((thrown: unknown) => thrown);
    expect(error).to.have.property('code', 'EACCES');
  });
});
