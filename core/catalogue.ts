/**
 * The catalogue in memory: models with their routes, prices and voices, read from the database in one go and again whenever
 * `svc_catalogue` tells of a change, and every minute should that be lost. Small (hundreds of rows), so it is held whole.
 * Immutable: a reload makes a new one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from './database.ts';
import { nextPrice, type Price, priceInForce } from './pricing.ts';

export type ModelType = 'chat' | 'speech' | 'transcription' | 'image' | 'video' | 'gateway';

export interface Route {
  readonly provider: string;
  readonly upstreamModel: string;
  /** Lower is tried first. */
  readonly priority: number;
  readonly weight: number;
}

export interface Model {
  readonly id: string;
  readonly type: ModelType;
  readonly maxTokens: number | null;
  readonly contextTokens: number | null;
  readonly recommended: boolean;
  readonly createdAt: Date;
  readonly routes: readonly Route[];
  /** Every announced price, all sizes and qualities, past and coming. */
  readonly prices: readonly Price[];
}

export interface ProviderRow {
  readonly name: string;
  readonly kind: string;
  readonly baseUrl: string | null;
  readonly credentialEnv: string | null;
}

export interface Voice {
  readonly slug: string;
  readonly name: string;
  readonly tagline: string;
  readonly provider: string;
  readonly upstreamVoice: string;
  readonly modelId: string;
}

export interface Catalogue {
  readonly models: ReadonlyMap<string, Model>;
  readonly providers: ReadonlyMap<string, ProviderRow>;
  readonly voices: ReadonlyMap<string, Voice>;
  /** The latest change to any of it, for `updated_at` and ETags. */
  readonly updatedAt: Date;
}

/** Every list of the catalogue in one round trip and one snapshot. Retired models are not offered. */
const READ_CATALOGUE = `
  select
    (select coalesce(json_agg(json_build_object('name', name, 'kind', kind, 'baseUrl', base_url,
      'credentialEnv', credential_env) order by name), '[]') from app.providers) as providers,
    (select coalesce(json_agg(json_build_object('id', id, 'type', type, 'maxTokens', max_tokens,
      'contextTokens', context_tokens, 'recommended', recommended, 'createdAt', created_at) order by id), '[]')
      from app.models where retired_at is null) as models,
    (select coalesce(json_agg(json_build_object('modelId', model_id, 'provider', provider, 'upstreamModel', upstream_model,
      'priority', priority, 'weight', weight) order by priority, provider), '[]') from app.routes) as routes,
    (select coalesce(json_agg(json_build_object('modelId', model_id, 'id', id, 'unit', unit, 'apInPer1k', ap_in_per_1k,
      'apOutPer1k', ap_out_per_1k, 'ap', ap, 'size', size, 'quality', quality, 'announcedAt', announced_at,
      'effectiveAt', effective_at) order by effective_at, id), '[]') from app.prices) as prices,
    (select coalesce(json_agg(json_build_object('slug', slug, 'name', name, 'tagline', tagline, 'provider', provider,
      'upstreamVoice', upstream_voice, 'modelId', model_id) order by slug), '[]') from app.voices) as voices`;

type PriceJson = Omit<Price, 'announcedAt' | 'effectiveAt'> & {
  modelId: string;
  announcedAt: string;
  effectiveAt: string;
};
type ModelJson = Omit<Model, 'routes' | 'prices' | 'createdAt'> & { createdAt: string };

interface CatalogueRow {
  providers: ProviderRow[];
  models: ModelJson[];
  routes: (Route & { modelId: string })[];
  prices: PriceJson[];
  voices: Voice[];
}

export async function readCatalogue(pool: Pool): Promise<Catalogue> {
  const { rows } = await pool.query<CatalogueRow>(READ_CATALOGUE);
  const row = rows[0] as CatalogueRow;
  const routes = Map.groupBy(row.routes, (route) => route.modelId);
  const prices = Map.groupBy(row.prices, (price) => price.modelId);
  let updatedAt = new Date(0);
  const models = new Map<string, Model>();
  for (const model of row.models) {
    const modelPrices = (prices.get(model.id) ?? []).map(
      ({ modelId: _modelId, ...price }): Price => ({
        ...price,
        announcedAt: new Date(price.announcedAt),
        effectiveAt: new Date(price.effectiveAt),
      }),
    );
    const createdAt = new Date(model.createdAt);
    for (const at of [createdAt, ...modelPrices.map((price) => price.announcedAt)])
      if (at > updatedAt) updatedAt = at;
    models.set(model.id, { ...model, createdAt, routes: routes.get(model.id) ?? [], prices: modelPrices });
  }
  return {
    models,
    providers: new Map(row.providers.map((provider) => [provider.name, provider])),
    voices: new Map(row.voices.map((voice) => [voice.slug, voice])),
    updatedAt,
  };
}

/** A model's price in force for a size and quality ('' where the model has none), and the next one announced. */
export function pricesOf(
  model: Model,
  at: Date,
  size = '',
  quality = '',
): { current: Price | undefined; next: Price | undefined } {
  const rows = model.prices.filter((price) => price.size === size && price.quality === quality);
  return { current: priceInForce(rows, at), next: nextPrice(rows, at) };
}

const REFRESH_MS = 60_000;
/** Pauses between tries to read it: doubled from the first to the last. */
const RETRY_MS = { first: 250, last: 10_000 };

/** Keeps the newest catalogue: `current()` never waits; `refresh()` is called when the database tells of a change. */
export interface CatalogueCache {
  current(): Catalogue;
  /** Resolves once a catalogue read after this call is current, however often that has to be tried, or it is closed. */
  refresh(): Promise<void>;
  onChange(listener: (catalogue: Catalogue) => void): void;
  close(): void;
}

export async function makeCatalogueCache(
  pool: Pool,
  onError: (error: Error) => void,
): Promise<CatalogueCache> {
  let catalogue = await readCatalogue(pool);
  let reading: Promise<void> | undefined;
  let again: Promise<void> | undefined;
  const listeners: ((catalogue: Catalogue) => void)[] = [];
  const closing = new AbortController();

  async function readUntilRead(): Promise<void> {
    for (
      let pauseMs = RETRY_MS.first;
      !closing.signal.aborted;
      pauseMs = Math.min(2 * pauseMs, RETRY_MS.last)
    ) {
      try {
        catalogue = await readCatalogue(pool);
        break;
      } catch (error) {
        if (closing.signal.aborted) return;
        onError(error as Error);
        await sleep(pauseMs, undefined, { signal: closing.signal, ref: false }).catch(() => {});
      }
    }
    for (const listener of listeners) listener(catalogue);
  }

  function read(): Promise<void> {
    reading = readUntilRead().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  function refresh(): Promise<void> {
    if (reading === undefined) return read();
    again ??= reading.then(() => {
      again = undefined;
      return read();
    });
    return again;
  }
  const timer = setInterval(() => void refresh(), REFRESH_MS);
  timer.unref();

  return {
    current: () => catalogue,
    onChange(listener) {
      listeners.push(listener);
    },
    refresh,
    close() {
      clearInterval(timer);
      closing.abort();
    },
  };
}
