/**
 * Unauthenticated tools: so many calls a day (UTC), area and client address. Addresses are counted as hashes under a random salt
 * that lasts the day: nothing that is stored tells one, and no day can be compared with another.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { ServiceError } from '../../core/errors.ts';
import { networkOf } from '../client-network.ts';
import type { Middleware } from '../context.ts';
import type { Counter, Counters } from '../counters.ts';

export interface AddressCap {
  /** Throws `ip_daily_cap` when the address has used up its day. */
  count(address: string, area: Area): Promise<void>;
}

/** Areas that have unauthenticated tools; the views of pages are counted apart, so that they use up nobody's tools. */
type Area = 'images' | 'tts' | 'beacon';

const DAY_SECONDS = 86_400;

/** `dailyCap` 0: addresses are not counted. */
export function makeAddressCap(options: {
  counters: Counters;
  dailyCap: number;
  now: () => Date;
}): AddressCap {
  const { counters, dailyCap, now } = options;
  const make = (area: Area): Counter =>
    counters.make({ name: `svc:ip:${area}`, limit: dailyCap, windowSeconds: DAY_SECONDS });
  const byArea: Readonly<Record<Area, Counter>> = {
    images: make('images'),
    tts: make('tts'),
    beacon: make('beacon'),
  };
  const saltOf = makeSalts(counters);
  return {
    async count(address, area) {
      if (dailyCap === 0) return;
      const at = now();
      const salt = await saltOf(at.toISOString().slice(0, 10));
      const key = createHmac('sha256', salt).update(networkOf(address)).digest('base64url');
      const { isAllowed } = await byArea[area].count(key);
      // with the day the salt changes, and with it what is counted
      const leftSeconds = DAY_SECONDS - (Math.floor(at.getTime() / 1000) % DAY_SECONDS);
      if (!isAllowed) throw new ServiceError('ip_daily_cap', {}, { retryAfterSeconds: leftSeconds });
    },
  };
}

export function capAddress(cap: AddressCap, area: Area): Middleware {
  return async (ctx, next) => {
    await cap.count(ctx.ip, area);
    await next();
  };
}

/** The day's salt: the one that all ingresses agree on, or one of our own as long as they cannot. */
function makeSalts(counters: Counters): (day: string) => Promise<string> {
  let latest: { day: string; own: string; agreed: string | undefined } | undefined;
  return async (day) => {
    if (latest?.day !== day) latest = { day, own: randomBytes(32).toString('base64url'), agreed: undefined };
    const salts = latest;
    salts.agreed ??= await counters.agreeOn(`svc:ip:salt:${day}`, salts.own, DAY_SECONDS);
    return salts.agreed ?? salts.own;
  };
}
