/** `svc c2pa chain`: what it prints is what the environment takes. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { givenIdentity } from '../../core/provenance/identity.ts';
import { printedObject, run } from './command.ts';

describe('svc c2pa chain', () => {
  it('prints a certificate chain and its key, another each time, and writes nothing', async () => {
    const made: (string | undefined)[] = [];
    for (let count = 0; count < 2; count += 1) {
      const { certificate, private_key: privateKey } = printedObject(
        await run('svc', ['c2pa', 'chain', '--json'], {}),
      ) as Record<string, string>;
      const identity = givenIdentity({
        dataDir: '/nonexistent',
        c2paCertificate: certificate,
        c2paPrivateKey: privateKey,
      });
      expect(identity?.algorithm).to.equal('ES256');
      made.push(identity?.certificates[0]?.fingerprint256);
    }
    expect(made[0]).to.not.equal(made[1]);
    const { stdout, stderr } = await run('svc', ['c2pa', 'chain'], {});
    expect(stdout).to.match(/^-----BEGIN CERTIFICATE-----[\s\S]+-----END PRIVATE KEY-----\n$/);
    expect(stderr).to.equal('');
  });
});
