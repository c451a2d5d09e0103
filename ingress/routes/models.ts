/**
 * The price lists: `/v1/models` (every model; also the client libraries' `models.list()`) and `/v1/chat/models`.
 * The catalogue is their single source.
 */
import { type Model, type ModelType, pricesOf } from '../../core/catalogue.ts';
import { ServiceError } from '../../core/errors.ts';
import { endpointOfOperation } from '../../core/operations.ts';
import type { Price } from '../../core/pricing.ts';
import type { Handler } from '../context.ts';
import { offered } from '../models.ts';
import { answerPublicRead } from '../public-read.ts';
import type { Services } from '../services.ts';

export const MAX_AGE_SECONDS = 30;

const ENDPOINTS: Readonly<Record<ModelType, string>> = {
  chat: 'POST /v1/chat/completions',
  speech: 'POST /v1/audio/speech',
  transcription: 'POST /v1/audio/transcriptions',
  image: 'POST /v1/images/generations',
  video: 'POST /v1/videos',
  gateway: 'GET /v1/x',
};

/** GET /v1/models */
export function listModels({ catalogue, now }: Services): Handler {
  return (ctx) => {
    const { models, updatedAt } = catalogue.current();
    const data = offered(models.values(), now()).map((model) => modelEntry(model, now()));
    answerPublicRead(ctx, { object: 'list', updated_at: updatedAt.toISOString(), data }, MAX_AGE_SECONDS);
  };
}

/** GET /v1/models/{id} */
export function getModel({ catalogue, now }: Services): Handler {
  return (ctx) => {
    const model = catalogue.current().models.get(String(ctx.params.id));
    if (model === undefined || offered([model], now()).length === 0) {
      throw new ServiceError('model_not_found', { param: 'model' });
    }
    answerPublicRead(ctx, modelEntry(model, now()), MAX_AGE_SECONDS);
  };
}

/** GET /v1/chat/models */
export function listChatModels({ catalogue, now }: Services): Handler {
  return (ctx) => {
    const { models, updatedAt } = catalogue.current();
    const data = offered(models.values(), now())
      .filter((model) => model.type === 'chat')
      .map((model) => modelEntry(model, now()));
    answerPublicRead(
      ctx,
      { object: 'list', updated_at: updatedAt.toISOString().slice(0, 10), data },
      MAX_AGE_SECONDS,
    );
  };
}

/** A model as every list shows it. */
export function modelEntry(model: Model, at: Date): Record<string, unknown> {
  const variants = Map.groupBy(model.prices, (price) => `${price.size} ${price.quality}`);
  const rows = [...variants.values()].map((prices) => {
    const { size, quality } = prices[0] as Price;
    return pricesOf(model, at, size, quality);
  });
  const current = rows.flatMap((row) => row.current ?? []);
  const next = rows
    .flatMap((row) => row.next ?? [])
    .toSorted((a, b) => a.effectiveAt.getTime() - b.effectiveAt.getTime());
  return {
    id: model.id,
    object: 'model',
    created: Math.floor(model.createdAt.getTime() / 1000),
    owned_by: 'svc',
    type: model.type,
    endpoint: endpointOfOperation(model.id) ?? ENDPOINTS[model.type],
    ...(model.maxTokens === null ? {} : { max_tokens: model.maxTokens }),
    ...(model.contextTokens === null ? {} : { context_tokens: model.contextTokens }),
    ...(model.recommended ? { recommended: true } : {}),
    pricing: priceView(current),
    ...(next[0] === undefined
      ? {}
      : { pricing_next: priceView(next, true), effective_at: next[0].effectiveAt.toISOString() }),
  };
}

/** One price as an object; prices by size and quality as a list. */
function priceView(prices: readonly Price[], isNext = false): unknown {
  const isPlain = prices.length === 1 && prices[0]?.size === '' && prices[0].quality === '';
  const views = prices.map((price) => ({
    unit: price.unit,
    ...(price.size === '' ? {} : { size: price.size }),
    ...(price.quality === '' ? {} : { quality: price.quality }),
    ...(price.unit === 'per_1k_tokens'
      ? { ap_in_per_1k: price.apInPer1k, ap_out_per_1k: price.apOutPer1k }
      : { ap: price.ap }),
    // rows of a table may change at different times; that of a single price stands beside it
    ...(isNext && !isPlain ? { effective_at: price.effectiveAt.toISOString() } : {}),
  }));
  return isPlain ? views[0] : views;
}
