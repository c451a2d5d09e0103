/**
 * What every route that speaks has in common once its body has been read: the price of the text, the look into the cache, and then
 * the common paid path.
 */
import { AUDIO_FORMATS, type AudioFormat } from '../../../core/audio/formats.ts';
import { ServiceError } from '../../../core/errors.ts';
import { quoteUnits, unitsCostAp } from '../../../core/pricing.ts';
import { hasUnreadableTag, SPEECH_TASK, type SpeechJobInput } from '../../../core/speech.ts';
import { answerWithAsset } from '../../assets.ts';
import { type Context, callerOf } from '../../context.ts';
import { runPaid } from '../../paid.ts';
import type { Services } from '../../services.ts';
import type { Speaker } from '../../voices.ts';
import { cacheKeyOf, findCached } from './cache.ts';
import { makePresentation } from './presentation.ts';
import type { SpokenText } from './text.ts';

/** A body that has passed check 5. */
export interface SpeechBody extends SpokenText {
  readonly textParam: string;
  readonly format: AudioFormat;
  readonly speed: number | null;
  readonly options: Readonly<Record<string, unknown>>;
  /** As sent. */
  readonly raw: Buffer;
}

export async function speak(
  ctx: Context,
  services: Services,
  body: SpeechBody,
  speaker: Speaker,
): Promise<void> {
  const { voice, model, price } = speaker;
  const { text, characters, format, speed, options } = body;
  if (hasUnreadableTag(model.id, text)) {
    throw new ServiceError('unsupported_parameter', { param: body.textParam, reason: 'expression_tag' });
  }
  const isTest = callerOf(ctx).prefix === 'svc_test_';
  const cacheKey = cacheKeyOf(isTest, speaker, body);
  const found = await findCached(ctx, services, cacheKey);
  if (found !== undefined) {
    ctx.set('x-svc-model', model.id);
    ctx.set('x-svc-voice', voice.slug);
    ctx.set('x-svc-cached', 'true');
    ctx.set('x-svc-ap-cost', '0');
    await answerWithAsset(ctx, services, found);
    return;
  }
  const priceAp = price.ap ?? 0;
  const costAp = unitsCostAp(priceAp, characters);
  const input: SpeechJobInput = {
    isTest,
    costAp,
    characters,
    text,
    voice: voice.slug,
    provider: voice.provider,
    upstreamVoice: voice.upstreamVoice,
    format,
    speed,
    options,
    cacheKey,
  };
  await runPaid(ctx, services, {
    area: 'tts',
    task: SPEECH_TASK,
    modelId: model.id,
    price,
    quote: quoteUnits(priceAp, characters),
    timeoutSeconds: services.config.speechTimeoutSeconds,
    isStream: true,
    input,
    rawBody: body.raw,
    stopWhenCallerLeaves: false,
    presentation: makePresentation(services, { voice: voice.slug, format, costAp }),
  });
}

export function requireFormat(asked: string | null | undefined): AudioFormat {
  const format = AUDIO_FORMATS.find((known) => known === (asked ?? 'mp3'));
  if (format === undefined) {
    throw new ServiceError('unsupported_format', { param: 'response_format', allowed: AUDIO_FORMATS });
  }
  return format;
}
