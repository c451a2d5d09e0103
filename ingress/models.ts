/**
 * Checks 6 and 7: the model a request names, whether this caller may use it, and its price in force.
 */
import { type Catalogue, type Model, type ModelType, pricesOf } from '../core/catalogue.ts';
import { ServiceError } from '../core/errors.ts';
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
