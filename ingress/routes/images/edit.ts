/** POST /v1/images/edits, and /v2.5/images/edits for client libraries: the pictures come as a form, or in JSON as base64. */
import type { Handler } from '../../context.ts';
import type { Services } from '../../services.ts';
import { readEdit } from './read.ts';
import { submitImages } from './submit.ts';

export function editImages(services: Services): Handler {
  return (ctx) => submitImages(ctx, services, 'edit', () => readEdit(ctx, services));
}
