import { setTimeout as delay } from 'node:timers/promises';

/** Rejects with the signal's own reason, as every provider does. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(milliseconds, undefined, { signal });
  } catch {
    // the reason is what the caller gave and waits for
    throw signal.reason;
  }
}
