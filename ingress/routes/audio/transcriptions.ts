/**
 * POST /v1/audio/transcriptions, /v1/tts/transcriptions: a form with a file, read while it arrives. What the file is and how long it
 * lasts is read from its bytes, before anything is reserved.
 */

import { ServiceError } from '../../../core/errors.ts';
import { quoteUnits, unitsCostAp } from '../../../core/pricing.ts';
import { startedTenSeconds, TRANSCRIPTION_TASK, type TranscriptionJobInput } from '../../../core/speech.ts';
import { type Context, callerOf, type Handler } from '../../context.ts';
import { runPaidWithInputs, type StoredInput, storeInputs } from '../../inputs.ts';
import { defaultModel, priceOf, requireModel } from '../../models.ts';
import type { PaidRequest } from '../../paid.ts';
import type { Services } from '../../services.ts';
import { MAX_FORM_BYTES, readTranscription } from './read-transcription.ts';
import { answerWithTranscript } from './transcript-view.ts';

interface Prepared {
  readonly request: PaidRequest;
  readonly inputs: readonly StoredInput[];
}

export function postTranscription(services: Services): Handler {
  return async (ctx) => {
    // its bytes are let go before the provider is waited for
    const { request, inputs } = await services.bodyBudget.withRoom(ctx, MAX_FORM_BYTES, () =>
      prepare(ctx, services),
    );
    await runPaidWithInputs(ctx, services, request, inputs);
  };
}

async function prepare(ctx: Context, services: Services): Promise<Prepared> {
  const { catalogue, config, now } = services;
  const asked = await readTranscription(ctx, services);
  const caller = callerOf(ctx);
  const at = now();
  const current = catalogue.current();
  const modelId = asked.model ?? defaultModel(current, 'transcription', at)?.id;
  if (modelId === undefined) throw new ServiceError('invalid_parameter', { param: 'model' });
  const model = requireModel(current, modelId, 'transcription', caller);
  const price = priceOf(model, at);
  const milliApPerUnit = (price.ap ?? 0) * 1000;
  const units = startedTenSeconds(asked.durationMs);
  const inputs = await storeInputs(ctx, services, [asked.audio]);
  const [audio] = inputs;
  if (audio === undefined) throw new Error('a file was not stored');
  const input: TranscriptionJobInput = {
    isTest: caller.prefix === 'svc_test_',
    costAp: unitsCostAp(milliApPerUnit, units),
    durationMs: asked.durationMs,
    audio,
    format: asked.format,
    language: asked.language,
    prompt: asked.prompt,
    temperature: asked.temperature,
    wantsSegments: asked.wantsSegments,
    wantsWords: asked.wantsWords,
  };
  return {
    inputs,
    request: {
      area: 'tts',
      task: TRANSCRIPTION_TASK,
      modelId,
      price,
      quote: quoteUnits(milliApPerUnit, units),
      timeoutSeconds: config.speechTimeoutSeconds,
      isStream: false,
      input,
      rawBody: asked.digest,
      stopWhenCallerLeaves: false,
      presentation: {
        announce() {},
        statusPath: (id) => `/v1/requests/${id}`,
        async requireKept() {},
        async answer(answering, _id, stored) {
          answerWithTranscript(answering, stored);
        },
      },
    },
  };
}
