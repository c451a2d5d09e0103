/**
 * Check 5, first half: reads a JSON body, cut off at the limit while it arrives. The bytes are hashed for idempotency where asked.
 */
import { type BulkyJson, parseBulkyJson } from '../core/bulky-json.ts';
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
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

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
  const { value, isLong, bytesOf } = checked(() => parseBulkyJson(raw));
  return { raw, value: requireShallow(value), isLong, bytesOf };
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
  if (type !== undefined && !JSON_TYPE.test(type)) throw new ServiceError('invalid_json');
}

function parsed(raw: Buffer): JsonBody {
  const value = checked<unknown>(() => JSON.parse(raw.toString('utf8')));
  return { raw, value: requireShallow(value) };
}

function checked<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (error) {
    throw new ServiceError('invalid_json', {}, { cause: (error as Error).name });
  }
}

function requireShallow(value: unknown): unknown {
  if (isDeeperThan(MAX_DEPTH, value))
    throw new ServiceError('invalid_parameter', { param: 'body', max_depth: MAX_DEPTH });
  return value;
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const name in value)
    if (isDeeperThan(levels - 1, (value as Record<string, unknown>)[name])) return true;
  return false;
}
