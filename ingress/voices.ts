/**
 * Voices as callers name them: which there are, which model speaks with one, and which of them the second path family knows. A
 * voice is known to one provider, and whatever model has a route to that provider speaks with it.
 */
import type { Catalogue, Model, Voice } from '../core/catalogue.ts';
import { ServiceError } from '../core/errors.ts';
import type { Price } from '../core/pricing.ts';
import { EL_MODELS } from '../core/speech.ts';
import type { Caller } from './key-cache.ts';
import { offered, priceOf, requireModel } from './models.ts';

export interface Speaker {
  readonly voice: Voice;
  readonly model: Model;
  readonly price: Price;
}

/** As a request names them; `voiceParam` is where. */
interface WantedSpeaker {
  readonly voice: string;
  readonly voiceParam: string;
  readonly model: string | undefined;
}

/** Voices whose model is on offer. */
export function offeredVoices({ voices, models }: Catalogue, at: Date): Voice[] {
  const ids = new Set(offered(models.values(), at).map(({ id }) => id));
  return [...voices.values()].filter(({ modelId }) => ids.has(modelId));
}

/** The second family's models that are on offer, in the order of their versions. */
export function elModels({ models }: Catalogue, at: Date): Model[] {
  return offered(
    EL_MODELS.flatMap((id) => models.get(id) ?? []).filter(({ type }) => type === 'speech'),
    at,
  );
}

/**
 * The second family's voices: those of providers that one of its models has a route to. So the catalogue decides: a provider that
 * neither model is routed to is not in the list (docs/catalogue.md).
 */
export function elVoices(catalogue: Catalogue, at: Date): Voice[] {
  const models = elModels(catalogue, at);
  return [...catalogue.voices.values()].filter((voice) => models.some((model) => speaksWith(model, voice)));
}

export function speaksWith(
  { routes }: Pick<Model, 'routes'>,
  { provider }: Pick<Voice, 'provider'>,
): boolean {
  return routes.some((route) => route.provider === provider);
}

/** Check 5 of the voice, then 6 and 7 of the model that is named, or else is the voice's own. */
export function requireSpeaker(
  catalogue: Catalogue,
  at: Date,
  caller: Pick<Caller, 'keyModels' | 'accountModels'>,
  wanted: WantedSpeaker,
): Speaker {
  const voice = catalogue.voices.get(wanted.voice);
  if (voice === undefined) throw new ServiceError('invalid_parameter', { param: wanted.voiceParam });
  return speakerOf(catalogue, at, caller, voice, wanted.model ?? voice.modelId, wanted.voiceParam);
}

/** The same within the second family. */
export function requireElSpeaker(
  catalogue: Catalogue,
  at: Date,
  caller: Pick<Caller, 'keyModels' | 'accountModels'>,
  wanted: WantedSpeaker & { readonly modelParam: string },
): Speaker {
  const voice = elVoices(catalogue, at).find(({ slug }) => slug === wanted.voice);
  if (voice === undefined) throw new ServiceError('invalid_parameter', { param: wanted.voiceParam });
  const models = elModels(catalogue, at).filter((model) => speaksWith(model, voice));
  const usual = models.find(({ id }) => id === voice.modelId) ?? models[0];
  const modelId = wanted.model ?? usual?.id ?? EL_MODELS[0];
  if (!EL_MODELS.some((id) => id === modelId)) {
    throw new ServiceError('model_not_found', { param: wanted.modelParam });
  }
  return speakerOf(catalogue, at, caller, voice, modelId, wanted.voiceParam);
}

function speakerOf(
  catalogue: Catalogue,
  at: Date,
  caller: Pick<Caller, 'keyModels' | 'accountModels'>,
  voice: Voice,
  modelId: string,
  voiceParam: string,
): Speaker {
  const model = requireModel(catalogue, modelId, 'speech', caller);
  const price = priceOf(model, at);
  if (!speaksWith(model, voice)) {
    throw new ServiceError('invalid_parameter', { param: voiceParam, reason: 'voice_of_another_model' });
  }
  return { voice, model, price };
}
