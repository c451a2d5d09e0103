/**
 * Signs pictures: each PNG and JPEG the service makes says in a C2PA manifest that a model made it, which one, when, and for which
 * request. A process that signs none loads nothing of it.
 */
import { givenIdentity, type IdentityConfig, loadIdentity } from './identity.ts';
import type { PictureToSign } from './manifest.ts';
import { withoutManifests } from './picture-parts.ts';

export interface PictureSigner {
  /**
   * A copy of the picture with our manifest in it, some 2 KB larger. A manifest it carried is replaced: what its maker said of it
   * does not hold for what we hand on. Rejects when the bytes are not of that type.
   */
  sign(bytes: Buffer, picture: PictureToSign): Promise<Buffer>;
}

/** Throws an Error of one line when the environment's certificate or key is of no use. */
export function makeSigner(config: IdentityConfig): PictureSigner {
  givenIdentity(config);
  let loaded: ReturnType<typeof load> | undefined;
  return {
    async sign(bytes, picture) {
      loaded ??= load(config).catch((error) => {
        loaded = undefined; // the folder may be there the next time
        throw error;
      });
      const { signPicture, signer } = await loaded;
      return signPicture(withoutManifests(bytes), picture, signer);
    },
  };
}

async function load(config: IdentityConfig) {
  const [identity, { makeCoseSigner, signPicture }] = await Promise.all([
    loadIdentity(config),
    import('./manifest.ts'),
  ]);
  return { signPicture, signer: makeCoseSigner(identity) };
}
