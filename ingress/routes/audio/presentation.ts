/** How speech leaves the service: as a file, while it is made, or once more from the store. */
import type { AudioFormat } from '../../../core/audio/formats.ts';
import { AUDIO_CONTENT_TYPES } from '../../../core/audio/formats.ts';
import type { Config } from '../../../core/config.ts';
import type { SpeechResult } from '../../../core/speech.ts';
import { answerWithAsset, requireLive } from '../../assets.ts';
import { type Context, callerOf } from '../../context.ts';
import { findAsset, findAssetsOfRequest } from '../../data/assets.ts';
import type { Presentation } from '../../paid.ts';
import { publicUrl } from '../../public-url.ts';
import type { Services } from '../../services.ts';

export interface Spoken {
  readonly voice: string;
  readonly format: AudioFormat;
  readonly costAp: number;
}

export function makePresentation(services: Services, { voice, format, costAp }: Spoken): Presentation {
  const announce = (ctx: Context): void => ctx.set('x-svc-voice', voice);
  return {
    announce,
    statusPath: (id) => `/v1/requests/${id}`,
    async requireKept(ctx, id) {
      const [asset] = await findAssetsOfRequest(services.pool, id, callerOf(ctx).accountId, ['audio']);
      requireLive(asset);
    },
    async answer(ctx, _id, stored) {
      const { asset } = JSON.parse(stored) as SpeechResult;
      ctx.set('x-svc-cached', 'false');
      await answerWithAsset(ctx, services, await findAsset(services.pool, asset, callerOf(ctx).accountId));
    },
    file: () => ({
      headers: {
        'Content-Type': AUDIO_CONTENT_TYPES[format],
        'Cache-Control': 'private, no-store',
        'X-Accel-Buffering': 'no',
        'X-Content-Type-Options': 'nosniff',
        'x-svc-ap-cost': String(costAp),
        'x-svc-cached': 'false',
      },
      fileOf(stored) {
        const { asset, contentType, bytes } = JSON.parse(stored) as SpeechResult;
        return { id: asset, kind: 'audio', contentType, bytes };
      },
    }),
  };
}

/** A speech where its request is looked at: everything but the audio. */
export function speechView(
  ctx: Context,
  config: Config,
  id: string,
  { contentType, bytes, model, voice, characters, costAp }: SpeechResult,
): Record<string, unknown> {
  return {
    object: 'audio',
    url: publicUrl(ctx, config, `/v1/audio/file/${id}`),
    content_type: contentType,
    bytes,
    model,
    voice,
    characters,
    ap_cost: costAp,
  };
}
