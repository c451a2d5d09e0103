/** Check 5 of a transcription: the form, its fields against their schema, and what its file is and how long it lasts. */
import { createHash } from 'node:crypto';
import { ServiceError } from '../../../core/errors.ts';
import type { TranscriptFormat } from '../../../core/speech.ts';
import type { Context } from '../../context.ts';
import type { Input } from '../../inputs.ts';
import { type Form, isForm, readForm } from '../../multipart.ts';
import { TranscriptionRequest } from '../../schemas/audio.ts';
import type { Services } from '../../services.ts';
import { makeValidator } from '../../validate.ts';
import { measure } from './measure.ts';

/** A form that has passed check 5. */
export interface TranscriptionBody {
  readonly model: string | undefined;
  readonly audio: Input;
  readonly durationMs: number;
  readonly format: TranscriptFormat;
  readonly language: string | null;
  readonly prompt: string | null;
  readonly temperature: number | null;
  readonly wantsSegments: boolean;
  readonly wantsWords: boolean;
  /** Of what is in the form: the same for the same fields and file. */
  readonly digest: Buffer;
}

const MAX_FILE_BYTES = 25 * 1024 * 1024;
/** Boundaries, headers and the other fields. */
const MAX_REST_BYTES = 64 * 1024;
export const MAX_FORM_BYTES = MAX_FILE_BYTES + MAX_REST_BYTES;

const FILE_FIELD = 'file';
const LIMITS = { maxBytes: MAX_FORM_BYTES, maxFileBytes: MAX_FILE_BYTES, maxFiles: 1, maxFields: 32 };

const validate = makeValidator(TranscriptionRequest);

export async function readTranscription(
  ctx: Context,
  services: Pick<Services, 'audioMeter'>,
): Promise<TranscriptionBody> {
  if (!isForm(ctx)) throw new ServiceError('invalid_json');
  const form = await readForm(ctx, LIMITS);
  const asked = validate(valuesOf(form));
  if (asked.stream === true) throw new ServiceError('unsupported_parameter', { param: 'stream' });
  const format = asked.response_format ?? 'json';
  const granularities = asked.timestamp_granularities ?? [];
  if (granularities.length > 0 && format !== 'verbose_json') {
    // as the convention says: only there they are seen
    throw new ServiceError('invalid_parameter', { param: 'timestamp_granularities' });
  }
  const [file] = form.files;
  if (file === undefined || file.bytes.length === 0)
    throw new ServiceError('invalid_parameter', { param: FILE_FIELD });
  if (file.name !== FILE_FIELD) throw new ServiceError('unsupported_parameter', { param: file.name });
  const { contentType, durationMs } = await measure(services, file.bytes, FILE_FIELD);
  const isSubtitled = format === 'srt' || format === 'vtt';
  const wantsWords = granularities.includes('word');
  return {
    model: asked.model ?? undefined,
    audio: { bytes: file.bytes, contentType },
    durationMs,
    format,
    language: asked.language ?? null,
    prompt: asked.prompt ?? null,
    temperature: asked.temperature ?? null,
    wantsSegments:
      isSubtitled || (format === 'verbose_json' && (!wantsWords || granularities.includes('segment'))),
    wantsWords,
    digest: digestOf(form),
  };
}

const LISTS: ReadonlySet<string> = new Set(['timestamp_granularities']);

/** A form has text only: what the schema wants otherwise is made so where it is so. */
function valuesOf({ fields }: Form): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [field, text] of fields) {
    const name = field.replace(/\[\d*\]$/, '');
    if (LISTS.has(name)) {
      values[name] = [...((values[name] as string[] | undefined) ?? []), text];
      continue;
    }
    if (Object.hasOwn(values, field)) throw new ServiceError('invalid_parameter', { param: field });
    // a name such as `__proto__` is a field like any other, and none that is known
    Object.defineProperty(values, field, { value: fieldValue(field, text), enumerable: true });
  }
  return values;
}

function fieldValue(field: string, text: string): unknown {
  if (field === 'temperature' && /^-?\d{1,9}(\.\d{1,15})?$/.test(text)) return Number(text);
  if (field === 'stream' && (text === 'true' || text === 'false')) return text === 'true';
  // clients send an optional field that was left empty
  return text === '' ? null : text;
}

/** The boundary is drawn anew whenever a client sends a form again: what counts is what is in it. */
function digestOf({ fields, files }: Form): Buffer {
  const hash = createHash('sha256');
  for (const field of fields) hash.update(JSON.stringify(field));
  for (const { name, bytes } of files) {
    hash.update(JSON.stringify([name, createHash('sha256').update(bytes).digest('hex')]));
  }
  return hash.digest();
}
