/** GET /v1/credits: the account's balance. Yen and dollars are approximations for people; AP is the money. */
import { ServiceError } from '../../core/errors.ts';
import { callerOf, type Handler } from '../context.ts';
import { findBalance } from '../data/accounts.ts';
import type { Services } from '../services.ts';

const AP_PER_USD = 10_000;

export function getCredits({ pool, config }: Services): Handler {
  return async (ctx) => {
    const balance = await findBalance(pool, callerOf(ctx).accountId);
    if (balance === undefined) throw new ServiceError('no_credits_record');
    const { balanceAp, heldAp, purchasedAp } = balance;
    ctx.set('Cache-Control', 'private, no-store');
    ctx.body = {
      balance_ap: balanceAp,
      held_ap: heldAp,
      available_ap: balanceAp - heldAp,
      granted_ap: balanceAp - purchasedAp,
      purchased_ap: purchasedAp,
      approximate_usd: Math.round((balanceAp / AP_PER_USD) * 100) / 100,
      approximate_jpy: Math.round((balanceAp / AP_PER_USD) * config.yenPerUsd),
    };
  };
}
