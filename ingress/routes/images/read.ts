/**
 * Check 5 for images: the body, as JSON or as a form, against its schema, and its pictures decoded. What leaves this file is
 * known to be what it says; nothing has been stored.
 */
import { createHash } from 'node:crypto';
import { bytesOfBase64 } from '../../../core/bulky-json.ts';
import { ServiceError } from '../../../core/errors.ts';
import { OUTPUT_FORMATS, type OutputFormat } from '../../../core/images.ts';
import { inspectPicture, type Picture, PictureError } from '../../../core/pictures.ts';
import type { Context } from '../../context.ts';
import { readBulkyJsonBody, readJsonBody } from '../../json-body.ts';
import { type Form, isForm, readForm } from '../../multipart.ts';
import { ImageEditRequest, ImageGenerationRequest, MAX_PICTURES } from '../../schemas/images.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { requireBytes } from './base64.ts';

export interface InputPicture {
  readonly bytes: Buffer;
  readonly contentType: string;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** A body that has passed check 5: what may be left out has its default. */
export interface ImageBody {
  readonly model: string | undefined;
  readonly prompt: string;
  readonly count: number;
  readonly size: string | undefined;
  readonly quality: string | undefined;
  readonly background: string | undefined;
  readonly outputFormat: OutputFormat;
  readonly outputCompression: number | undefined;
  readonly moderation: string | undefined;
  /** Its id or slug, not looked up yet. */
  readonly character: string | undefined;
  readonly user: string | undefined;
  readonly seed: number | undefined;
  readonly inputFidelity: string | undefined;
  readonly isStream: boolean;
  readonly partialImages: number;
  readonly isUrlOnly: boolean;
  readonly mayBeCached: boolean;
  readonly pictures: readonly InputPicture[];
  readonly mask: InputPicture | undefined;
  /** Of the body as sent: the same for the same fields and files. */
  readonly digest: Buffer;
}

/** Pictures not looked at yet, by the name that an error gives them. */
interface NamedBytes {
  readonly param: string;
  readonly bytes: Buffer;
}

const MAX_PICTURE_UPLOAD_BYTES = 25 * 1024 * 1024;
const MAX_FORM_FIELDS = 64;

const validateGeneration = makeValidator(ImageGenerationRequest);
const validateEdit = makeValidator(ImageEditRequest);

export async function readGeneration(ctx: Context, { config }: Pick<Services, 'config'>): Promise<ImageBody> {
  const { raw, value } = await readJsonBody(ctx, config.maxBodyBytes);
  return { ...judged(validateGeneration(value), digestOf(raw)), pictures: [], mask: undefined };
}

export async function readEdit(ctx: Context, { config }: Pick<Services, 'config'>): Promise<ImageBody> {
  const { fields, digest, files, bytesOf } = isForm(ctx)
    ? fromForm(
        await readForm(ctx, {
          maxBytes: config.maxImageBodyBytes,
          maxFileBytes: MAX_PICTURE_UPLOAD_BYTES,
          maxFiles: MAX_PICTURES + 1,
          maxFields: MAX_FORM_FIELDS,
        }),
      )
    : fromJson(await readBulkyJsonBody(ctx, config.maxImageBodyBytes));
  const {
    image,
    reference_image: single,
    reference_images: several,
    mask: maskText,
    ...rest
  } = validateEdit(fields);
  const sent = [
    ...files.filter(({ param }) => param !== 'mask'),
    ...picturesOf('image', image, bytesOf),
    ...picturesOf('reference_image', single, bytesOf),
    ...picturesOf('reference_images', several, bytesOf),
  ];
  const masks = [...files.filter(({ param }) => param === 'mask'), ...picturesOf('mask', maskText, bytesOf)];
  const body = judged(rest, digest);
  if (sent.length === 0) throw new ServiceError('invalid_parameter', { param: 'image' });
  if (sent.length > MAX_PICTURES)
    throw new ServiceError('invalid_parameter', { param: 'image', maximum: MAX_PICTURES });
  if (masks.length > 1) throw new ServiceError('invalid_parameter', { param: 'mask' });
  return { ...body, ...(await lookAt(sent, masks[0])) };
}

/** What needs more than one field to be judged, and what has a code of its own. */
function judged(
  body: ImageGenerationRequest & { input_fidelity?: string | null },
  digest: Buffer,
): Omit<ImageBody, 'pictures' | 'mask'> {
  const prompt = body.prompt ?? '';
  if (prompt.trim() === '') throw new ServiceError('prompt_required', { param: 'prompt' });
  const outputFormat = outputFormatOf(body.output_format);
  if (outputFormat === 'png' && (body.output_compression ?? 100) !== 100) {
    throw new ServiceError('invalid_parameter', { param: 'output_compression' });
  }
  if (outputFormat === 'jpeg' && body.background === 'transparent') {
    throw new ServiceError('invalid_parameter', { param: 'background' });
  }
  const isStream = body.stream ?? false;
  if (!isStream && (body.partial_images ?? 0) > 0) {
    throw new ServiceError('invalid_parameter', { param: 'partial_images' });
  }
  return {
    model: body.model ?? undefined,
    prompt,
    count: body.n ?? 1,
    size: body.size ?? undefined,
    quality: body.quality ?? undefined,
    background: body.background ?? undefined,
    outputFormat,
    outputCompression: body.output_compression ?? undefined,
    moderation: body.moderation ?? undefined,
    character: body.character ?? undefined,
    user: body.safety_identifier || (body.user ?? undefined),
    seed: body.seed ?? undefined,
    inputFidelity: body.input_fidelity ?? undefined,
    isStream,
    partialImages: body.partial_images ?? 0,
    isUrlOnly: body.response_format === 'url',
    mayBeCached: body.cache ?? true,
    digest,
  };
}

function outputFormatOf(asked: string | null | undefined): OutputFormat {
  const format = OUTPUT_FORMATS.find((known) => known === (asked ?? 'png'));
  if (format === undefined) {
    throw new ServiceError('unsupported_format', { param: 'output_format', allowed: OUTPUT_FORMATS });
  }
  return format;
}

interface Sent {
  /** Without the files. */
  readonly fields: unknown;
  readonly digest: Buffer;
  readonly files: readonly NamedBytes[];
  /** Of a field that is base64. */
  readonly bytesOf: (text: string) => Buffer | undefined;
}

/** Pictures that are texts of the body, by the names of its fields; all others are told by what they say. */
const TEXT_FIELDS = ['image', 'reference_image', 'reference_images', 'mask'];

function fromJson({ raw, value, isLong, bytesOf }: Awaited<ReturnType<typeof readBulkyJsonBody>>): Sent {
  for (const [param, sent] of Object.entries(value ?? {})) {
    // longer than any of them may be, and so not parsed with them
    if (typeof sent === 'string' && isLong(sent) && !TEXT_FIELDS.includes(param))
      throw new ServiceError('invalid_parameter', { param });
  }
  return { fields: value, digest: digestOf(raw), files: [], bytesOf };
}

const FILE_FIELDS: ReadonlySet<string> = new Set([
  'image',
  'image[]',
  'reference_image',
  'reference_images',
  'reference_images[]',
  'mask',
]);
const WHOLE_NUMBERS: ReadonlySet<string> = new Set(['n', 'output_compression', 'partial_images', 'seed']);
const BOOLEANS: ReadonlySet<string> = new Set(['stream', 'cache']);

/** A form has text only: what the schema wants as a number or boolean is made one where it is one. */
function fromForm({ fields, files }: Form): Sent {
  const values: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  // the boundary is drawn anew whenever a client sends a form again: what counts is what is in it
  const hash = createHash('sha256');
  for (const [name, text] of fields) {
    if (Object.hasOwn(values, name)) throw new ServiceError('invalid_parameter', { param: name });
    hash.update(JSON.stringify([name, text]));
    values[name] = fieldValue(name, text);
  }
  for (const { name, bytes } of files) {
    if (!FILE_FIELDS.has(name)) throw new ServiceError('unsupported_parameter', { param: name });
    hash.update(JSON.stringify([name, digestOf(bytes).toString('hex')]));
  }
  return {
    fields: { ...values },
    digest: hash.digest(),
    files: files.map(({ name, bytes }) => ({ param: name.replace('[]', ''), bytes })),
    bytesOf: bytesOfBase64,
  };
}

function fieldValue(name: string, text: string): unknown {
  if (WHOLE_NUMBERS.has(name) && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (BOOLEANS.has(name) && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

function picturesOf(
  param: string,
  sent: string | readonly string[] | null | undefined,
  bytesOf: Sent['bytesOf'],
): NamedBytes[] {
  if (sent == null) return [];
  const isOne = typeof sent === 'string';
  return (isOne ? [sent] : sent).map((text, index) => {
    const name = isOne ? param : `${param}[${index}]`;
    return { param: name, bytes: requireBytes(bytesOf(text), name, MAX_PICTURE_UPLOAD_BYTES) };
  });
}

/** Decodes them one after the other: a picture in memory is many times its file. */
async function lookAt(
  sent: readonly NamedBytes[],
  sentMask: NamedBytes | undefined,
): Promise<Pick<ImageBody, 'pictures' | 'mask'>> {
  const pictures: InputPicture[] = [];
  let first: { width: number; height: number } | undefined;
  for (const { param, bytes } of sent) {
    const { contentType, width, height } = await lookAtPicture(param, bytes);
    first ??= { width, height };
    pictures.push({ bytes, contentType, sha256: digestOf(bytes).toString('hex') });
  }
  if (sentMask === undefined) return { pictures, mask: undefined };
  const { bytes } = sentMask;
  const { contentType, width, height, hasAlpha } = await lookAtPicture('mask', bytes);
  const refused = (reason: string): ServiceError =>
    new ServiceError('invalid_parameter', { param: 'mask', reason });
  if (width !== first?.width || height !== first.height) throw refused('another_size');
  if (!hasAlpha) throw refused('not_transparent'); // where it is transparent the picture is changed
  return { pictures, mask: { bytes, contentType, sha256: digestOf(bytes).toString('hex') } };
}

/** What it is; throws ServiceError that names `param` where it is no picture that is taken. */
export async function lookAtPicture(param: string, bytes: Buffer): Promise<Picture> {
  try {
    return await inspectPicture(bytes);
  } catch (error) {
    if (!(error instanceof PictureError)) throw error;
    const code = error.problem === 'unsupported_format' ? 'unsupported_format' : 'invalid_parameter';
    throw new ServiceError(code, { param, reason: error.problem }, { cause: error });
  }
}

function digestOf(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}
