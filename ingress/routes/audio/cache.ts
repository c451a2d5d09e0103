/** The same text by the same voice is spoken once: what makes a speech, as one hash, and the look for one that is still kept. */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { AudioFormat } from '../../../core/audio/formats.ts';
import { type Context, callerOf } from '../../context.ts';
import { type Asset, findCachedResult } from '../../data/assets.ts';
import { areReadable, mayBeAnsweredFromCache } from '../../result-cache.ts';
import type { Services } from '../../services.ts';
import type { Speaker } from '../../voices.ts';

/** Changed whenever the same parameters come to mean other audio. */
const CACHE_VERSION = 1;

export interface SpeechQuestion {
  readonly text: string;
  readonly format: AudioFormat;
  readonly speed: number | null;
  readonly options: Readonly<Record<string, unknown>>;
}

/** SHA-256, hexadecimal. The account is no part of it: results are looked for per account. */
export function cacheKeyOf(isTest: boolean, { voice, model }: Speaker, asked: SpeechQuestion): string {
  const question = {
    version: CACHE_VERSION,
    isTest, // answered by the sandbox: nobody else may be given that
    model: model.id,
    voice: [voice.slug, voice.provider, voice.upstreamVoice],
    text: asked.text,
    format: asked.format,
    speed: asked.speed ?? 1,
    options: asked.options,
  };
  return createHash('sha256')
    .update(canonicalize(question) ?? '')
    .digest('hex');
}

export async function findCached(
  ctx: Context,
  services: Services,
  cacheKey: string,
): Promise<Asset | undefined> {
  if (!(await mayBeAnsweredFromCache(ctx, services))) return undefined;
  const found = await findCachedResult(services.pool, callerOf(ctx).accountId, cacheKey);
  if (found === undefined || !(await areReadable(services, found.assets))) return undefined;
  return found.assets[0];
}
