/** GET /v1/images/models: the image models with their price rows, and which of them is meant when a request names none. */
import type { Handler } from '../../context.ts';
import { defaultModel, offered } from '../../models.ts';
import { answerPublicRead } from '../../public-read.ts';
import type { Services } from '../../services.ts';
import { MAX_AGE_SECONDS, modelEntry } from '../models.ts';

export function listImageModels({ catalogue, now }: Services): Handler {
  return (ctx) => {
    const current = catalogue.current();
    const at = now();
    const data = offered(current.models.values(), at)
      .filter((model) => model.type === 'image')
      .map((model) => modelEntry(model, at));
    answerPublicRead(
      ctx,
      {
        object: 'list',
        updated_at: current.updatedAt.toISOString(),
        recommended: defaultModel(current, 'image', at)?.id ?? null,
        data,
      },
      MAX_AGE_SECONDS,
    );
  };
}
