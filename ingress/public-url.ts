/** Addresses given to callers: below BASE_URL, or else below the address the request came to. */
import type { Config } from '../core/config.ts';
import type { Context } from './context.ts';

export function publicUrl(ctx: Context, { baseUrl }: Pick<Config, 'baseUrl'>, path: string): string {
  return `${baseUrl ?? `${ctx.protocol}://${ctx.host}`}${path}`;
}
