/** Conditional and range requests (RFC 9110, sections 13 and 14): what a caller has already, which part of a file it wants. */
import type { Context } from './context.ts';

/** Both ends included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * If-None-Match (section 13.1.2). Not Koa's `fresh`, which takes `Cache-Control: no-cache` for a wish to have the whole body
 * again: `fetch` adds that to every request which brings an If-None-Match of its own.
 */
export function hasAlready(ctx: Context, tag: string): boolean {
  const header = ctx.headers['if-none-match'];
  if (header === undefined) return false;
  return header.split(',').some((known) => known.trim() === '*' || known.trim().replace(/^W\//, '') === tag);
}

const ONE_RANGE = /^bytes=\s*(\d*)-(\d*)\s*$/i;

/**
 * Range (section 14.2). Undefined: the whole file, which is also the answer to several ranges, to other units, to what is not a
 * range at all, and to a range of a file that has changed since (If-Range).
 */
export function parseRange(ctx: Context, tag: string, size: number): ByteRange | 'unsatisfiable' | undefined {
  const { range, 'if-range': ifRange } = ctx.headers;
  if (range === undefined || (ifRange !== undefined && ifRange !== tag)) return undefined;
  const [, first = '', last = ''] = ONE_RANGE.exec(range) ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') {
    // the last so many bytes
    const count = Math.min(Number(last), size);
    return count === 0 ? 'unsatisfiable' : { start: size - count, end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return undefined;
  return start >= size ? 'unsatisfiable' : { start, end };
}
