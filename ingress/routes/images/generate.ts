/** POST /v1/images/generations, and /v2.5/images/generations for client libraries. */
import type { Handler } from '../../context.ts';
import type { Services } from '../../services.ts';
import { readGeneration } from './read.ts';
import { submitImages } from './submit.ts';

export function generateImages(services: Services): Handler {
  return (ctx) => submitImages(ctx, services, 'generation', () => readGeneration(ctx, services));
}
