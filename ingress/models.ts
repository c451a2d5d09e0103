/**
 * Checks 6 and 7: the model a request names, whether this caller may use it, and its price in force.
 */
import { type Catalogue, type Model, type ModelType, pricesOf } from '../core/catalogue.ts';
import { ServiceError } from '../core/errors.ts';
import { chooseImagePrice, imagePricesInForce } from '../core/image-prices.ts';
import type { Price } from '../core/pricing.ts';
import type { Caller } from './key-cache.ts';

/** 404 when there is no such model of this type, 403 when the key or the account may not use it. */
export function requireModel(
  catalogue: Catalogue,
  id: string,
  type: ModelType,
  caller: Pick<Caller, 'keyModels' | 'accountModels'>,
): Model {
  const model = catalogue.models.get(id);
  if (model === undefined || model.type !== type)
    throw new ServiceError('model_not_found', { param: 'model' });
  for (const allowed of [caller.keyModels, caller.accountModels]) {
    if (allowed !== null && !allowed.includes(id))
      throw new ServiceError('model_not_allowed', { param: 'model' });
  }
  return model;
}

/** The price in force; a model whose first price is still to come is not sold yet. */
export function priceOf(model: Model, at: Date): Price {
  const { current } = pricesOf(model, at);
  if (current === undefined) throw new ServiceError('model_not_found', { param: 'model' });
  return current;
}

/** Of an image model, the price in force for a size and quality; those not named are chosen. */
export function imagePriceOf(
  model: Model,
  at: Date,
  wanted: { readonly size: string | undefined; readonly quality: string | undefined },
): Price {
  const rows = imagePricesInForce(model, at);
  if (rows.length === 0) throw new ServiceError('model_not_found', { param: 'model' });
  const choice = chooseImagePrice(rows, wanted);
  if ('price' in choice) return choice.price;
  const { notPriced, allowed } = choice;
  throw new ServiceError(notPriced === 'size' ? 'size_not_priced' : 'quality_not_priced', {
    param: notPriced,
    allowed,
  });
}

/** The model for requests that name none: the one the catalogue recommends, else the only one of its type on offer. */
export function defaultModel(catalogue: Catalogue, type: ModelType, at: Date): Model | undefined {
  const ofType = offered(catalogue.models.values(), at).filter((model) => model.type === type);
  return ofType.find((model) => model.recommended) ?? (ofType.length === 1 ? ofType[0] : undefined);
}

/** Models with a price in force: one whose first price is still to come is not sold yet. */
export function offered(models: Iterable<Model>, at: Date): Model[] {
  return [...models].filter((model) => model.prices.some((price) => price.effectiveAt <= at));
}
