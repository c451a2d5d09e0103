/** What pictures are signed with: made once and kept, or given; and what is said of one that is of no use. */
import { execFile } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makeCertificateChain } from '../../../core/provenance/certificate-chain.ts';
import {
  givenIdentity,
  type IdentityConfig,
  loadIdentity,
  ownCertificate,
} from '../../../core/provenance/identity.ts';
import { makeSigner } from '../../../core/provenance/signer.ts';
import {
  makeBoughtIdentity,
  makeIdentityConfig,
  makePicture,
  pictureToSign,
  withFolder,
} from '../../helpers/c2pa.ts';

const MODULE = join(import.meta.dirname, '..', '..', '..', 'core', 'provenance', 'identity.ts');
const OWNER_ALONE = 0o600;

const keptIn = (dataDir: string): IdentityConfig => ({
  dataDir,
  c2paCertificate: undefined,
  c2paPrivateKey: undefined,
});

const fingerprint = (config: IdentityConfig) =>
  loadIdentity(config).then(({ certificates }) => certificates[0]?.fingerprint256);

describe('a certificate chain of our own', () => {
  it('has a root and a leaf that may sign and nothing else', async () => {
    const { certificate, privateKey } = await makeCertificateChain();
    const [leaf, root] = (certificate.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []).map(
      (pem) => new X509Certificate(pem),
    );
    if (leaf === undefined || root === undefined) throw new Error('not two certificates');
    expect([root.ca, leaf.ca]).to.deep.equal([true, false]);
    expect(leaf.checkIssued(root) && leaf.verify(root.publicKey)).to.equal(true);
    expect(root.checkIssued(root) && root.verify(root.publicKey)).to.equal(true);
    expect(leaf.keyUsage).to.deep.equal(['1.3.6.1.5.5.7.3.4']);
    expect(leaf.checkPrivateKey(createPrivateKey(privateKey))).to.equal(true);
    const years = (new Date(leaf.validTo).getTime() - Date.now()) / (365.25 * 86_400_000);
    expect(years).to.be.within(9.9, 10.1);
  });

  it('is made once, readable by nobody else, and found again', () =>
    withFolder(async (folder) => {
      const dataDir = join(folder, 'not', 'there', 'yet');
      expect(await ownCertificate(keptIn(dataDir))).to.equal(undefined);
      const first = await fingerprint(keptIn(dataDir));
      expect(await fingerprint(keptIn(dataDir))).to.equal(first);
      expect((await ownCertificate(keptIn(dataDir)))?.fingerprint256).to.equal(first);
      expect(await readdir(join(dataDir, 'c2pa'))).to.deep.equal(['chain.pem']);
      expect((await stat(join(dataDir, 'c2pa', 'chain.pem'))).mode & 0o777).to.equal(OWNER_ALONE);
      expect((await stat(join(dataDir, 'c2pa'))).mode & 0o777).to.equal(0o700);
    }));

  it('is one, whoever begins at once: in one process and in several', () =>
    withFolder(async (dataDir) => {
      const script = `const { loadIdentity } = await import(${JSON.stringify(MODULE)});
        const { certificates } = await loadIdentity(${JSON.stringify({ dataDir })});
        process.stdout.write(certificates[0].fingerprint256);`;
      const inProcess = () =>
        promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]).then(
          ({ stdout }) => stdout,
        );
      const seen = await Promise.all([
        ...Array.from({ length: 4 }, inProcess),
        ...Array.from({ length: 8 }, () => fingerprint(keptIn(dataDir))),
      ]);
      expect(new Set(seen).size).to.equal(1);
      expect(await readdir(join(dataDir, 'c2pa'))).to.deep.equal(['chain.pem']);
    }));

  it('is not made where it cannot be kept, and is made at the next try', () =>
    withFolder(async (folder) => {
      const dataDir = join(folder, 'data');
      const signer = makeSigner(keptIn(dataDir));
      const sign = async () => signer.sign(await makePicture('png'), pictureToSign('png'));
      await writeFile(dataDir, 'a file where the folder should be');
      await sign().then(
        () => expect.fail('it was signed'),
        (error) => expect(error.code).to.be.oneOf(['ENOTDIR', 'EEXIST']),
      );
      await rm(dataDir);
      expect(await sign()).to.be.instanceOf(Buffer);
    }));
});

describe('a certificate from the environment', () => {
  it('is used as it is given, its root left out of what is sent', async () => {
    const given = await makeBoughtIdentity();
    const { certificates, algorithm } = await loadIdentity(given);
    expect(algorithm).to.equal('ES256');
    expect(certificates.map(({ subject }) => subject)).to.deep.equal([
      'O=Customer\nCN=Pictures',
      'O=Seller\nCN=Intermediate',
    ]);
  });

  it('may be on one line', async () => {
    const given = await makeIdentityConfig();
    const onOneLine = (pem: string | undefined) => pem?.replaceAll('\n', '\\n');
    const identity = givenIdentity({
      ...given,
      c2paCertificate: onOneLine(given.c2paCertificate),
      c2paPrivateKey: onOneLine(given.c2paPrivateKey),
    });
    expect(identity?.certificates[0]?.subject).to.match(/^O=svc\nCN=svc provenance /);
  });

  it('is known to a process that has no key', async () => {
    const { c2paCertificate } = await makeIdentityConfig();
    const own = await ownCertificate({ dataDir: '/nonexistent', c2paCertificate, c2paPrivateKey: undefined });
    expect(own?.subject).to.match(/^O=svc\nCN=svc provenance /);
  });

  it('that is of no use is refused at once, in one line that says why and shows no key', async () => {
    const good = await makeIdentityConfig();
    const { c2paCertificate: certificate = '', c2paPrivateKey: key = '' } = good;
    const other = await makeIdentityConfig();
    const rsa = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    const forServers = await makeBoughtIdentity({ usages: ['1.3.6.1.5.5.7.3.1'] });
    const [leaf = '', middle = '', root = ''] =
      (await makeBoughtIdentity()).c2paCertificate?.split(/(?<=-----END CERTIFICATE-----)\n/) ?? [];
    const cases: readonly (readonly [string | undefined, string | undefined, RegExp])[] = [
      [undefined, key, /^C2PA_CERTIFICATE is not set/],
      [certificate, undefined, /^C2PA_PRIVATE_KEY is not set/],
      ['hello', key, /^C2PA_CERTIFICATE holds no certificate/],
      [certificate.replace('MII', 'AAA'), key, /^C2PA_CERTIFICATE holds something that is no certificate/],
      [certificate, 'hello', /^C2PA_PRIVATE_KEY is no private key/],
      [certificate, other.c2paPrivateKey, /^C2PA_PRIVATE_KEY does not belong/],
      [certificate, rsa.privateKey, /^C2PA_PRIVATE_KEY does not belong/],
      [good.rootPem, key, /: it is an authority’s$/],
      [forServers.c2paCertificate, forServers.c2paPrivateKey, /emailProtection/],
      [`${leaf}\n${root}\n${middle}`, key, /each certificate must be issued by the one behind it$/],
    ];
    for (const [c2paCertificate, c2paPrivateKey, message] of cases) {
      const config = { dataDir: '/nonexistent', c2paCertificate, c2paPrivateKey };
      expect(() => makeSigner(config), String(message)).to.throw(Error, message);
      try {
        givenIdentity(config);
      } catch (error) {
        expect(String(error)).to.not.match(/\n|PRIVATE KEY-----/);
      }
    }
  });

  it('is none where nothing is set', async () => {
    expect(givenIdentity(keptIn('/nonexistent'))).to.equal(undefined);
    expect(await readFile('/nonexistent/c2pa/chain.pem').catch(() => 'none')).to.equal('none');
  });
});
