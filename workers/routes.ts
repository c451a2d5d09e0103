/**
 * From a model to a provider that answers: routes in order of priority, shared by weight within one; a retryable failure is
 * tried again, then the next route is taken; a route that keeps failing is left alone for a while (circuit breaker).
 */
import {
  BrokenCircuitError,
  type CircuitBreakerPolicy,
  ConsecutiveBreaker,
  circuitBreaker,
  DelegateBackoff,
  ExponentialBackoff,
  handleWhen,
  type IBackoff,
  type IRetryBackoffContext,
  retry,
} from 'cockatiel';
import type { CatalogueCache, Route } from '../core/catalogue.ts';
import { makeProvider } from './providers/index.ts';
import { type Provider, ProviderError } from './providers/provider.ts';

/** Consecutive failures that open a route's circuit, and how long it stays open. */
const BREAKER_FAILURES = 5;
const BREAKER_OPEN_MS = 10_000;
/** Tries of one route before the next is taken. */
const TRIES = 2;
const BACKOFF = { initialDelay: 100, maxDelay: 1000 };
/** A provider that asks for a longer pause than this is left for the next route. */
const MAX_RETRY_AFTER_SECONDS = 2;

export const SANDBOX_ROUTE: Route = { provider: 'sandbox', upstreamModel: 'sandbox', priority: 0, weight: 1 };

export interface Routes {
  /**
   * Calls `work` with one route after the other until one answers. `hasBegun` true: the caller has seen part of an answer, so
   * nothing is tried again.
   */
  call<T>(
    request: { modelId: string; isTest: boolean; signal: AbortSignal },
    work: (provider: Provider, route: Route) => Promise<T>,
    hasBegun?: () => boolean,
  ): Promise<T>;
  close(): Promise<void>;
}

export function makeRoutes(
  catalogue: CatalogueCache,
  env: Readonly<Record<string, string | undefined>>,
): Routes {
  const providers = new Map<string, { provider: Provider; fingerprint: string }>();
  const breakers = new Map<string, CircuitBreakerPolicy>();

  function providerOf(name: string): Provider {
    const row =
      catalogue.current().providers.get(name) ??
      (name === 'sandbox' ? { name, kind: 'sandbox', baseUrl: null, credentialEnv: null } : undefined);
    if (row === undefined) throw new ProviderError('misconfigured', `the catalogue has no provider ${name}`);
    const fingerprint = JSON.stringify(row);
    const known = providers.get(name);
    if (known?.fingerprint === fingerprint) return known.provider;
    void known?.provider.close();
    const provider = makeProvider({
      name: row.name,
      kind: row.kind,
      baseUrl: row.baseUrl ?? undefined,
      credential: row.credentialEnv === null ? undefined : env[row.credentialEnv],
    });
    providers.set(name, { provider, fingerprint });
    return provider;
  }

  function breakerOf(route: Route): CircuitBreakerPolicy {
    const key = `${route.provider}\n${route.upstreamModel}`;
    let breaker = breakers.get(key);
    if (breaker === undefined) {
      breaker = circuitBreaker(handleWhen(isRouteFault), {
        halfOpenAfter: BREAKER_OPEN_MS,
        breaker: new ConsecutiveBreaker(BREAKER_FAILURES),
      });
      breakers.set(key, breaker);
    }
    return breaker;
  }

  return {
    async call({ modelId, isTest, signal }, work, hasBegun = () => false) {
      const routes = isTest
        ? [SANDBOX_ROUTE]
        : inOrder(catalogue.current().models.get(modelId)?.routes ?? []);
      let lastError: unknown;
      for (const route of routes) {
        const again = retry(
          handleWhen((error) => isWorthRetrying(error) && !hasBegun() && !signal.aborted),
          { maxAttempts: TRIES - 1, backoff: pause },
        );
        try {
          return await breakerOf(route).execute(() =>
            again.execute(() => work(providerOf(route.provider), route)),
          );
        } catch (error) {
          if (error instanceof BrokenCircuitError) {
            lastError = new ProviderError('unavailable', `the circuit of ${route.provider} is open`, {
              cause: error,
            });
            continue;
          }
          if (signal.aborted || hasBegun() || !(error instanceof ProviderError) || !error.isRoutable)
            throw error;
          lastError = error;
        }
      }
      throw lastError ?? new ProviderError('misconfigured', `no route for ${modelId}`);
    },
    async close() {
      await Promise.all([...providers.values()].map(({ provider }) => provider.close()));
    },
  };
}

/** The route is at fault, not the request. */
function isRouteFault(error: unknown): boolean {
  return error instanceof ProviderError && error.isRoutable;
}

function isWorthRetrying(error: unknown): boolean {
  return (
    error instanceof ProviderError &&
    error.isRetryable &&
    (error.retryAfterSeconds === undefined || error.retryAfterSeconds <= MAX_RETRY_AFTER_SECONDS)
  );
}

/** The pause before another try: as long as the provider asks for, and never shorter than ours. */
const pause = new DelegateBackoff<IRetryBackoffContext<unknown>, IBackoff<unknown>>((context, before) => {
  const own = (before ?? new ExponentialBackoff(BACKOFF)).next(context);
  const error = 'error' in context.result ? context.result.error : undefined;
  const askedMs = error instanceof ProviderError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  return { delay: Math.max(own.duration, askedMs), state: own };
});

/** By priority; within one priority drawn by weight. */
function inOrder(routes: readonly Route[]): Route[] {
  return routes
    .map((route) => ({ route, draw: Math.random() ** (1 / route.weight) }))
    .toSorted((a, b) => a.route.priority - b.route.priority || b.draw - a.draw)
    .map(({ route }) => route);
}
