/** GET /v1/audio/file/{id}, /v1/tts/file/{id}: a speech, by its own id or by that of its request. */
import { serveAsset } from '../../assets.ts';
import { callerOf, type Handler } from '../../context.ts';
import { findAsset, findAssetsOfRequest } from '../../data/assets.ts';
import { idOf } from '../../parameters.ts';
import type { Services } from '../../services.ts';

export function getAudioFile(services: Services): Handler {
  const { pool } = services;
  return async (ctx) => {
    const id = idOf(ctx);
    const { accountId } = callerOf(ctx);
    const own = await findAsset(pool, id, accountId);
    const found = own ?? (await findAssetsOfRequest(pool, id, accountId, ['audio']))[0];
    await serveAsset(ctx, services, found?.kind === 'audio' ? found : undefined);
  };
}
