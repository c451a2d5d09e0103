/** What addresses carry: ids in the path, and the query's parameters, each in the type it should have. */
import { ServiceError } from '../core/errors.ts';
import type { Context } from './context.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Ids hold their time in 48 bits of milliseconds since 1970; what is outside is outside of every id. */
const MAX_ID_TIME_MS = 2 ** 48 - 1;

/** How deep a list that is paged by an offset may be gone into: what is skipped is read. */
export const MAX_OFFSET = 10_000;

export function isId(text: string): boolean {
  return UUID.test(text);
}

/** The path's `id`; what is no id is nothing's. */
export function idOf(ctx: Context): string {
  const id = String(ctx.params.id);
  if (!UUID.test(id)) throw new ServiceError('not_found');
  return id.toLowerCase();
}

function query(ctx: Context, name: string): string | undefined {
  const value = ctx.query[name];
  if (Array.isArray(value)) throw new ServiceError('invalid_parameter', { param: name });
  return value === '' ? undefined : value;
}

/** As it is, up to so many characters; PostgreSQL takes no NUL. */
export function text(ctx: Context, name: string, maxLength: number): string | undefined {
  const value = query(ctx, name);
  if (value !== undefined && (value.length > maxLength || value.includes('\u0000')))
    throw new ServiceError('invalid_parameter', { param: name });
  return value;
}

export function wholeNumber(
  ctx: Context,
  name: string,
  fallback: number,
  minimum: number,
  maximum: number,
): number {
  const text = query(ctx, name);
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < minimum || value > maximum) {
    throw new ServiceError('invalid_parameter', { param: name });
  }
  return value;
}

export function oneOf(ctx: Context, name: string, allowed: readonly string[]): string | undefined {
  const value = query(ctx, name);
  if (value !== undefined && !allowed.includes(value))
    throw new ServiceError('invalid_parameter', { param: name, allowed });
  return value;
}

export function uuid(ctx: Context, name: string): string | undefined {
  const value = query(ctx, name);
  if (value !== undefined && !UUID.test(value)) throw new ServiceError('invalid_parameter', { param: name });
  return value;
}

export function date(ctx: Context, name: string): Date | undefined {
  const text = query(ctx, name);
  if (text === undefined) return undefined;
  const value = new Date(text);
  if (Number.isNaN(value.getTime())) throw new ServiceError('invalid_parameter', { param: name });
  return new Date(Math.min(Math.max(value.getTime(), 0), MAX_ID_TIME_MS));
}
