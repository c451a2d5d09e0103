/**
 * Checks 1 and 2 of a keyed request: the credential, then the account's state. Nothing here touches the body.
 */
import { ServiceError } from '../../core/errors.ts';
import type { Context, Middleware } from '../context.ts';
import type { Caller } from '../key-cache.ts';
import type { Services } from '../services.ts';

type Dependencies = Pick<Services, 'keys' | 'config' | 'now'>;

/** Check 1: sets `ctx.state.caller` or ends the request with 401. `keyHeader`: where a client library sends the key instead. */
export function authenticate(services: Dependencies, keyHeader?: string): Middleware {
  return async (ctx, next) => {
    const secret = credentialOf(ctx) ?? (keyHeader === undefined ? undefined : headerOf(ctx, keyHeader));
    if (secret === undefined) throw new ServiceError('not_authenticated');
    const caller = await services.keys.find(secret);
    if (caller === undefined) throw new ServiceError('invalid_api_key');
    // a known key knows its account's language, also for the errors that follow
    if (caller.language !== null) ctx.state.language = caller.language;
    if (caller.revokedAt !== null) throw new ServiceError('key_revoked');
    const now = services.now();
    if (caller.expiresAt !== null && caller.expiresAt <= now) throw new ServiceError('key_expired');
    const { betaEndsAt } = services.config;
    if (caller.prefix === 'svc_beta_' && betaEndsAt !== undefined && betaEndsAt <= now) {
      throw new ServiceError('key_expired');
    }
    ctx.state.caller = caller;
    await next();
  };
}

/** Check 2, for requests that can charge: whether the account may spend at all. */
export function accountMaySpend(services: Dependencies): Middleware {
  return async (ctx, next) => {
    const { caller } = ctx.state;
    if (caller === undefined) throw new Error('accountMaySpend stands behind authenticate');
    refuseByAccountState(caller, services);
    await next();
  };
}

function refuseByAccountState(caller: Caller, { config, now }: Dependencies): void {
  if (caller.accountKind === 'enterprise' && !caller.accountApproved)
    throw new ServiceError('enterprise_manual_approval');
  if (!caller.hasPurchased && mustSpendPurchased(caller, { config, now })) {
    throw new ServiceError('card_required');
  }
  if (!caller.hadInitialGrant && !caller.hasBalance && !isOldEnoughForGrant(caller, { config, now })) {
    throw new ServiceError('account_too_new');
  }
}

/** Whether a card is missing without which only purchased AP may be spent; the reservation has the last word on the balance. */
export function mustSpendPurchased(
  caller: Caller,
  { config, now }: Pick<Dependencies, 'config' | 'now'>,
): boolean {
  return caller.prefix === 'svc_live_' && !caller.cardOnFile && now() >= config.cardRequiredFrom;
}

/** Whether the account has reached the age for the free grant. */
export function isOldEnoughForGrant(
  caller: Caller,
  { config, now }: Pick<Dependencies, 'config' | 'now'>,
): boolean {
  return now().getTime() - caller.accountCreatedAt.getTime() >= config.minimumAccountAgeHours * 3_600_000;
}

/** The key alone, without a scheme before it. */
function headerOf(ctx: Context, name: string): string | undefined {
  const value = ctx.headers[name];
  return typeof value === 'string' && value !== '' ? value.trim() : undefined;
}

const BEARER = /^Bearer +([^\s]+)$/i;

function credentialOf(ctx: Context): string | undefined {
  const header = ctx.headers.authorization;
  if (header === undefined || header === '') return undefined;
  // a malformed header is a bad key, not a missing one
  return BEARER.exec(header)?.[1] ?? '';
}
