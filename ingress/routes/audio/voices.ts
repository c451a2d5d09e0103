/** GET /v1/audio/voices, /v1/tts/voices: every voice on offer. */
import type { Handler } from '../../context.ts';
import type { Services } from '../../services.ts';
import { offeredVoices } from '../../voices.ts';

export function listVoices({ catalogue, now }: Pick<Services, 'catalogue' | 'now'>): Handler {
  return (ctx) => {
    const voices = offeredVoices(catalogue.current(), now());
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = {
      voices: voices.map(({ slug, name, tagline, provider }) => ({ id: slug, name, tagline, provider })),
    };
  };
}
