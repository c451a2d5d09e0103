/** POST /v1/audio/estimate, /v1/tts/estimate: what a text would cost to speak. Free, without a key, so many a day for an address. */
import type { Model } from '../../../core/catalogue.ts';
import { type Language, ServiceError } from '../../../core/errors.ts';
import { unitsCostAp } from '../../../core/pricing.ts';
import type { Handler } from '../../context.ts';
import { readJsonBody } from '../../json-body.ts';
import { defaultModel, priceOf } from '../../models.ts';
import { EstimateRequest } from '../../schemas/audio.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { requireSpeaker } from '../../voices.ts';
import { maxSpeechBodyBytes, requireText } from './text.ts';

const AP_PER_USD = 10_000;
/** How fast a text is usually read: letters of alphabets, and characters that are syllables or words. */
const LETTERS_PER_SECOND = 15;
const WIDE_PER_SECOND = 7;
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu;

/** Whoever asks without a key is bound by no list of models. */
const ANYBODY = { keyModels: null, accountModels: null };

const validate = makeValidator(EstimateRequest);

export function postEstimate(services: Services): Handler {
  const { config } = services;
  return async (ctx) => {
    const { value } = await readJsonBody(ctx, maxSpeechBodyBytes(config));
    const asked = validate(value);
    const { text, characters } = requireText(asked.text, 'text', config);
    const rateAp = priceApOf(services, asked);
    const costAp = unitsCostAp(rateAp, characters);
    ctx.set('Cache-Control', 'no-store');
    ctx.body = {
      text_length: characters,
      estimated_duration_sec: secondsOf(text, characters),
      ap_cost: costAp,
      jpy_cost: Math.ceil((costAp * config.yenPerUsd) / AP_PER_USD),
      pricing: pricingView(rateAp, ctx.state.language),
    };
  };
}

/** Of the voice's model, or of the one that is named; of the default one where neither is. */
function priceApOf(
  { catalogue, now }: Services,
  asked: { voice?: string | null; model?: string | null },
): number {
  const at = now();
  const current = catalogue.current();
  if (asked.voice != null) {
    const wanted = { voice: asked.voice, voiceParam: 'voice', model: asked.model ?? undefined };
    return requireSpeaker(current, at, ANYBODY, wanted).price.ap ?? 0;
  }
  const model: Model | undefined =
    asked.model == null ? defaultModel(current, 'speech', at) : current.models.get(asked.model);
  if (model?.type !== 'speech') {
    if (asked.model != null) throw new ServiceError('model_not_found', { param: 'model' });
    throw new ServiceError('invalid_parameter', { param: 'voice' });
  }
  return priceOf(model, at).ap ?? 0;
}

function secondsOf(text: string, characters: number): number {
  const wide = text.match(WIDE)?.length ?? 0;
  return Math.max(1, Math.ceil(wide / WIDE_PER_SECOND + (characters - wide) / LETTERS_PER_SECOND));
}

function pricingView(rateAp: number, language: Language): { rate: string; note: string } {
  if (language === 'ja') {
    return {
      rate: `1,000 文字あたり ${rateAp} AP`,
      note: '料金は入力文字数（Unicode コードポイント数）で計算され、音声の長さにはよりません。円換算と長さは目安です。',
    };
  }
  return {
    rate: `${rateAp} AP per 1,000 characters`,
    note: 'Billed by the number of input characters (Unicode code points), not by the length of the audio. Yen and duration are approximate.',
  };
}
