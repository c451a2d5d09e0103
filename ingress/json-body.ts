/**
 * Check 5, first half: reads a JSON body, cut off at the limit while it arrives. The bytes are hashed for idempotency where asked.
 */
import { isUtf8 } from 'node:buffer';
import { type BulkyJson, isEscaped, parseBulkyJson } from '../core/bulky-json.ts';
import { ServiceError } from '../core/errors.ts';
import type { Context } from './context.ts';
import { readRawBody } from './raw-body.ts';

export interface JsonBody {
  readonly value: unknown;
  /** The bytes as sent. */
  readonly raw: Buffer;
}

/** Levels of nesting: far above any schema in use, far below what overflows a stack here or in the database. */
const MAX_DEPTH = 200;
/** Values in one body: far above any request in use. 20 MB of empty objects would be 700 MB of memory. */
const MAX_VALUES = 100_000;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
/** RFC 8259: JSON is UTF-8. */
const OTHER_CHARSET = /;\s*charset\s*=(?!\s*"?utf-?8"?\s*(?:;|$))/i;

export async function readJsonBody(ctx: Context, maxBytes: number): Promise<JsonBody> {
  requireJsonType(ctx);
  return parsed(await readRawBody(ctx, maxBytes));
}

/**
 * For bodies with files in them as base64, which are decoded where they lie: `raw` is no longer what was sent once one was taken,
 * and `value` names them.
 */
export async function readBulkyJsonBody(
  ctx: Context,
  maxBytes: number,
): Promise<JsonBody & Omit<BulkyJson, 'value'>> {
  requireJsonType(ctx);
  const raw = await readRawBody(ctx, maxBytes);
  refuseUnreadable(raw);
  const { value, isLong, bytesOf } = checked(() => parseBulkyJson(raw));
  return { raw, value, isLong, bytesOf };
}

/** For what needs no body: none is the empty object. */
export async function readOptionalJsonBody(ctx: Context, maxBytes: number): Promise<JsonBody> {
  const raw = await readRawBody(ctx, maxBytes);
  if (raw.length === 0) return { raw, value: {} };
  requireJsonType(ctx);
  return parsed(raw);
}

function requireJsonType(ctx: Context): void {
  const type = ctx.headers['content-type'];
  if (type !== undefined && (!JSON_TYPE.test(type) || OTHER_CHARSET.test(type)))
    throw new ServiceError('invalid_json');
}

function parsed(raw: Buffer): JsonBody {
  refuseUnreadable(raw);
  return { raw, value: checked<unknown>(() => JSON.parse(raw.toString('utf8'))) };
}

function checked<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (error) {
    throw new ServiceError('invalid_json', {}, { cause: (error as Error).name });
  }
}

/** Looks at the bytes before anything is made of them. */
function refuseUnreadable(raw: Buffer): void {
  // other bytes would be replaced by the decoder: an altered prompt, and charged
  if (!isUtf8(raw)) throw new ServiceError('invalid_json');
  refuseSprawl(raw);
}

/** What is parsed may weigh thirty times what was sent. */
function refuseSprawl(raw: Buffer): void {
  let depth = 0;
  let values = 0;
  for (let index = 0; index < raw.length; index += 1) {
    switch (raw[index]) {
      case QUOTE:
        index = endOfString(raw, index);
        break;
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        depth += 1;
        values += 1;
        if (depth > MAX_DEPTH) {
          throw new ServiceError('invalid_parameter', { param: 'body', max_depth: MAX_DEPTH });
        }
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        depth -= 1;
        break;
      case COMMA:
        values += 1;
    }
    if (values > MAX_VALUES) {
      throw new ServiceError('invalid_parameter', { param: 'body', max_values: MAX_VALUES });
    }
  }
}

/** Where the string that begins here ends; the last byte where it does not. Long strings are leapt over, not walked. */
function endOfString(raw: Buffer, start: number): number {
  let end = raw.indexOf(QUOTE, start + 1);
  while (end !== -1 && isEscaped(raw, start + 1, end)) end = raw.indexOf(QUOTE, end + 1);
  return end === -1 ? raw.length : end;
}

const [QUOTE, COMMA] = [0x22, 0x2c];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];
