/** Check 3: the key's scope, answered in the specification's differently shaped body. */
import { ScopeError } from '../../core/errors.ts';
import type { Scope } from '../../core/keys.ts';
import { callerOf, type Middleware } from '../context.ts';

export function requireScope(scope: Scope): Middleware {
  return (ctx, next) => {
    const { scopes } = callerOf(ctx);
    if (!scopes.includes(scope)) throw new ScopeError(scope, scopes);
    return next() as Promise<void>;
  };
}
