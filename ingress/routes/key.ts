/** GET /v1/key: what the presented key is and may do, and what is left of its caps today and this month (UTC). */
import { ServiceError } from '../../core/errors.ts';
import { callerOf, type Handler } from '../context.ts';
import { findKeyDetails } from '../data/accounts.ts';
import type { Services } from '../services.ts';

export function getKey({ pool }: Services): Handler {
  return async (ctx) => {
    const caller = callerOf(ctx);
    const details = await findKeyDetails(pool, caller.keyId);
    if (details === undefined) throw new ServiceError('api_key_not_found');
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = {
      id: caller.keyId,
      object: 'key',
      account_id: caller.accountId,
      prefix: caller.prefix,
      hint: details.hint,
      name: details.name,
      scopes: caller.scopes,
      allowed_models: caller.keyModels,
      caps: {
        per_request_ap: caller.capPerRequestAp,
        daily: capView(caller.capDailyAp, details.usedTodayAp),
        monthly: capView(caller.capMonthlyAp, details.usedThisMonthAp),
      },
      rate_limit: { requests: caller.ratePerMinute, window_seconds: 60 },
      created_at: details.createdAt.toISOString(),
      expires_at: caller.expiresAt?.toISOString() ?? null,
      last_used_at: details.lastUsedAt?.toISOString() ?? null,
    };
  };
}

function capView(capAp: number | null, usedAp: number): Record<string, number> | null {
  return capAp === null
    ? null
    : { cap_ap: capAp, used_ap: usedAp, remaining_ap: Math.max(capAp - usedAp, 0) };
}
