/**
 * POST /v1/images/inspect: whether a picture carries a C2PA manifest, what that says, and whether it holds. Free and without a key.
 * The picture comes as the raw body, whatever its content type says, or as the one file of a form.
 */
import { ServiceError } from '../../../core/errors.ts';
import type { Context, Handler } from '../../context.ts';
import { isForm, readForm } from '../../multipart.ts';
import { readRawBody } from '../../raw-body.ts';
import type { Services } from '../../services.ts';

const MAX_PICTURE_BYTES = 25 * 1024 * 1024;
/** Boundaries and headers of a form around it. */
const MAX_FORM_OVERHEAD_BYTES = 64 * 1024;

const FORM_LIMITS = {
  maxBytes: MAX_PICTURE_BYTES + MAX_FORM_OVERHEAD_BYTES,
  maxFileBytes: MAX_PICTURE_BYTES,
  maxFiles: 1,
  maxFields: 1,
};

export function postInspect({ bodyBudget, inspector }: Pick<Services, 'bodyBudget' | 'inspector'>): Handler {
  return async (ctx) => {
    const inForm = isForm(ctx);
    const maxBytes = inForm ? FORM_LIMITS.maxBytes : MAX_PICTURE_BYTES;
    // the picture takes its room until it is answered for
    ctx.body = await bodyBudget.withRoom(ctx, maxBytes, async () => {
      const { bytes, param } = inForm ? await fileOf(ctx) : await bodyOf(ctx);
      if (bytes.length === 0) throw new ServiceError('invalid_parameter', { param });
      const inspection = await inspector.inspect(bytes);
      if (inspection === undefined) {
        throw new ServiceError('unsupported_format', { param, allowed: ['png', 'jpeg', 'webp'] });
      }
      return inspection;
    });
    ctx.set('Cache-Control', 'no-store');
  };
}

interface Sent {
  readonly bytes: Buffer;
  /** Where it was. */
  readonly param: string;
}

async function bodyOf(ctx: Context): Promise<Sent> {
  return { bytes: await readRawBody(ctx, MAX_PICTURE_BYTES), param: 'body' };
}

async function fileOf(ctx: Context): Promise<Sent> {
  const { fields, files } = await readForm(ctx, FORM_LIMITS);
  const [field] = fields;
  if (field !== undefined) throw new ServiceError('unsupported_parameter', { param: field[0] });
  const [file] = files;
  if (file === undefined) throw new ServiceError('invalid_parameter', { param: 'image' });
  return { bytes: file.bytes, param: file.name };
}
