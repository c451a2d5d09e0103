/**
 * Reads a multipart/form-data body (RFC 7578) while it arrives: every limit ends the reading at the byte that breaks it, and
 * whatever was read by then is let go. What the fields mean is the route's to say; nothing here trusts a name or a type.
 */
import type { IncomingMessage } from 'node:http';
import { Busboy, type BusboyFileStream, type BusboyHeaders } from '@fastify/busboy';
import { ServiceError } from '../core/errors.ts';
import type { Context } from './context.ts';

export interface FormLimits {
  /** Of the whole body. */
  readonly maxBytes: number;
  readonly maxFileBytes: number;
  readonly maxFiles: number;
  readonly maxFields: number;
}

export interface FormFile {
  readonly name: string;
  readonly bytes: Buffer;
}

export interface Form {
  /** In the order they came; a name may come again. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly files: readonly FormFile[];
}

/** The longest text a field of ours may have is a prompt. */
const MAX_FIELD_BYTES = 256 * 1024;
const MAX_NAME_BYTES = 100;
const MAX_HEADER_BYTES = 8 * 1024;
const MAX_HEADER_PAIRS = 32;

const FORM_TYPE = /^multipart\/form-data\s*;/i;

export function isForm(ctx: Context): boolean {
  return FORM_TYPE.test(ctx.headers['content-type'] ?? '');
}

/** Throws ServiceError: `invalid_json` when it is no whole form, `invalid_parameter` when it is over a limit. */
export async function readForm(ctx: Context, limits: FormLimits): Promise<Form> {
  const encoding = ctx.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') throw new ServiceError('invalid_json');
  try {
    if (Number(ctx.headers['content-length'] ?? 0) > limits.maxBytes)
      throw overBytes('body', limits.maxBytes);
    return await parse(ctx.req, limits);
  } catch (error) {
    // what is still on its way will not be read: the connection ends with the answer
    ctx.set('Connection', 'close');
    if (error instanceof ServiceError) throw error;
    throw new ServiceError('invalid_json', {}, { cause: error });
  }
}

function parse(request: IncomingMessage, limits: FormLimits): Promise<Form> {
  const { promise, resolve, reject } = Promise.withResolvers<Form>();
  const parser = new Busboy({
    headers: request.headers as BusboyHeaders,
    limits: {
      fileSize: limits.maxFileBytes,
      files: limits.maxFiles,
      fields: limits.maxFields,
      fieldSize: MAX_FIELD_BYTES,
      fieldNameSize: MAX_NAME_BYTES,
      headerPairs: MAX_HEADER_PAIRS,
      headerSize: MAX_HEADER_BYTES,
    },
  });
  const fields: [string, string][] = [];
  const files: FormFile[] = [];
  let bytes = 0;
  const fail = (error: unknown): void => {
    request.unpipe(parser);
    request.off('data', count);
    request.pause();
    fields.length = 0;
    files.length = 0;
    reject(error);
  };
  const count = (part: Buffer): void => {
    bytes += part.length;
    if (bytes > limits.maxBytes) fail(overBytes('body', limits.maxBytes));
  };
  parser.on('field', (name, value, isNameCut, isValueCut) => {
    if (name === undefined || isNameCut) fail(new Error('a field without a name'));
    else if (isValueCut) fail(overBytes(name, MAX_FIELD_BYTES));
    else fields.push([name, value]);
  });
  parser.on('file', (name, stream) => {
    takeFile(name, stream, files, limits, fail);
  });
  parser.once('fieldsLimit', () =>
    fail(new ServiceError('invalid_parameter', { param: 'body', max_fields: limits.maxFields })),
  );
  parser.once('filesLimit', () =>
    fail(new ServiceError('invalid_parameter', { param: 'body', max_files: limits.maxFiles })),
  );
  parser.on('error', fail);
  parser.once('finish', () => {
    if (fields.length === 0 && files.length === 0) fail(new Error('a form without a field'));
    else resolve({ fields, files });
  });
  request.once('error', fail);
  request.once('aborted', () => fail(new Error('the caller left before the end of the form')));
  request.on('data', count);
  request.pipe(parser);
  return promise;
}

function takeFile(
  name: string | undefined,
  stream: BusboyFileStream,
  files: FormFile[],
  limits: FormLimits,
  fail: (error: unknown) => void,
): void {
  let parts: Buffer[] = [];
  stream.on('data', (part: Buffer) => parts.push(part));
  stream.once('limit', () => {
    parts = [];
    fail(overBytes(name ?? 'body', limits.maxFileBytes));
  });
  stream.on('error', fail);
  stream.once('end', () => {
    if (name === undefined) fail(new Error('a file without a name'));
    else files.push({ name, bytes: Buffer.concat(parts) });
    parts = [];
  });
}

function overBytes(param: string, maxBytes: number): ServiceError {
  return new ServiceError('invalid_parameter', { param, max_bytes: maxBytes });
}
