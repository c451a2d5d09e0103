/**
 * GET /v1/el/voices, and the paths of `@elevenlabs/elevenlabs-js` that tell of voices and models, in its shapes. A voice's id there is
 * the slug that callers write everywhere else.
 */
import type { Model, Voice } from '../../../core/catalogue.ts';
import { ServiceError } from '../../../core/errors.ts';
import type { Context, Handler } from '../../context.ts';
import { wholeNumber } from '../../parameters.ts';
import type { Services } from '../../services.ts';
import { elModels, elVoices, speaksWith } from '../../voices.ts';

type Dependencies = Pick<Services, 'catalogue' | 'config' | 'now'>;

const DEFAULT_PAGE = 10;
const MAX_PAGE = 100;

/** GET /v1/el/voices */
export function listElVoices({ catalogue, now }: Dependencies): Handler {
  return (ctx) => {
    const current = catalogue.current();
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = {
      voices: elVoices(current, now()).map(({ slug, name }) => ({ id: slug, name })),
      models: elModels(current, now()).map(({ id }) => id),
    };
  };
}

/** GET /v1/el/v1/voices: all of them. */
export function listClientVoices(services: Dependencies): Handler {
  return (ctx) => {
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = { voices: clientVoices(services) };
  };
}

/** GET /v1/el/v1/voices/{voice} */
export function getClientVoice(services: Dependencies): Handler {
  return (ctx) => {
    const found = clientVoices(services).find((voice) => voice.voice_id === ctx.params.voice);
    if (found === undefined) throw new ServiceError('not_found');
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = found;
  };
}

/** GET /v1/el/v2/voices: by pages, and by words in the name and description. */
export function searchClientVoices(services: Dependencies): Handler {
  return (ctx) => {
    const limit = wholeNumber(ctx, 'page_size', DEFAULT_PAGE, 1, MAX_PAGE);
    const words = one(ctx, 'search')?.toLowerCase() ?? '';
    const found = clientVoices(services).filter(({ name, description }) =>
      `${name} ${description}`.toLowerCase().includes(words),
    );
    const start = startOf(found, one(ctx, 'next_page_token'));
    const page = found.slice(start, start + limit);
    const hasMore = start + limit < found.length;
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = {
      voices: page,
      has_more: hasMore,
      total_count: found.length,
      next_page_token: hasMore ? page.at(-1)?.voice_id : null,
    };
  };
}

/** GET /v1/el/v1/models: a bare list, as that client wants it. */
export function listClientModels({ catalogue, config, now }: Dependencies): Handler {
  return (ctx) => {
    const models = elModels(catalogue.current(), now());
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = models.map(({ id }) => ({
      model_id: id,
      name: id,
      can_be_finetuned: false,
      can_do_text_to_speech: true,
      can_do_voice_conversion: false,
      maximum_text_length_per_request: config.maxSpeechCharacters,
      languages: [],
    }));
  };
}

interface ClientVoice {
  readonly voice_id: string;
  readonly name: string;
  readonly category: 'premade';
  readonly description: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly high_quality_base_model_ids: readonly string[];
}

function clientVoices({ catalogue, now }: Dependencies): ClientVoice[] {
  const current = catalogue.current();
  const models = elModels(current, now());
  return elVoices(current, now())
    .map((voice) => clientVoice(voice, models))
    .toSorted((a, b) => (a.voice_id < b.voice_id ? -1 : 1));
}

function clientVoice(voice: Voice, models: readonly Model[]): ClientVoice {
  return {
    voice_id: voice.slug,
    name: voice.name,
    category: 'premade',
    description: voice.tagline,
    labels: {},
    high_quality_base_model_ids: models.filter((model) => speaksWith(model, voice)).map(({ id }) => id),
  };
}

/** After the voice that the page before ended with; of one that is gone since, after where it stood. */
function startOf(voices: readonly ClientVoice[], token: string | undefined): number {
  if (token === undefined) return 0;
  const next = voices.findIndex(({ voice_id: id }) => id > token);
  return next === -1 ? voices.length : next;
}

function one(ctx: Context, name: string): string | undefined {
  const value = ctx.query[name];
  if (Array.isArray(value)) throw new ServiceError('invalid_parameter', { param: name });
  return value === '' ? undefined : value;
}
