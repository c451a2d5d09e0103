/** The language of messages: the account's setting wins later (authenticate), else the best match of Accept-Language, else English. */
import type { Middleware } from '../context.ts';

export const language: Middleware = (ctx, next) => {
  const header = ctx.headers['accept-language'];
  ctx.state.language = header !== undefined && ctx.acceptsLanguages('en', 'ja') === 'ja' ? 'ja' : 'en';
  return next() as Promise<void>;
};
