/**
 * From a model to a provider that answers: routes in order of priority, shared by weight within one; a retryable failure is
 * tried again, then the next route is taken; a route that keeps failing is left alone for a while (circuit breaker).
 */
import {
  DelegateBackoff,
  ExponentialBackoff,
  handleWhen,
  type IBackoff,
  type IRetryBackoffContext,
  retry,
} from 'cockatiel';
import type { CatalogueCache, ProviderRow, Route } from '../core/catalogue.ts';
import { Circuit } from './circuit.ts';
import { makeProvider } from './providers/index.ts';
import { type Provider, ProviderError } from './providers/provider.ts';
import { type RequestTimes, Watch, WatchedProvider } from './watched-provider.ts';

/** Consecutive failures that open a route's circuit, and how long it stays open. */
const CIRCUIT = { failures: 5, openMs: 10_000 };
/** Tries of one route before the next is taken. */
const TRIES = 2;
const BACKOFF = { initialDelay: 100, maxDelay: 1000 };
/** A provider that asks for a longer pause than this is left for the next route. */
const MAX_RETRY_AFTER_SECONDS = 2;

/** A provider whose row has changed ends when its calls do: each has a deadline, at most this far away (core/config.ts). */
const REPLACED_GRACE_MS = 86_400_000;

const SANDBOX: ProviderRow = { name: 'sandbox', kind: 'sandbox', baseUrl: null, credentialEnv: null };
export const SANDBOX_ROUTE: Route = { provider: 'sandbox', upstreamModel: 'sandbox', priority: 0, weight: 1 };

export interface RouteRequest {
  readonly modelId: string;
  readonly isTest: boolean;
  readonly signal: AbortSignal;
  /** A provider that shows nothing is left in time for the next one. */
  readonly times: RequestTimes;
  /** Only routes of this provider: what is asked for (a voice) is known to no other. */
  readonly provider?: string | undefined;
}

export interface Routes {
  /**
   * Calls `work` with one route after the other until one answers. `hasBegun` true: the caller has seen part of an answer, so
   * nothing is tried again.
   */
  call<T>(
    request: RouteRequest,
    work: (provider: Provider, route: Route) => Promise<T>,
    hasBegun?: () => boolean,
  ): Promise<T>;
  close(): Promise<void>;
}

export function makeRoutes(
  catalogue: CatalogueCache,
  env: Readonly<Record<string, string | undefined>>,
): Routes {
  const providers = new Map<string, { provider: Provider; row: ProviderRow; fingerprint: string }>();
  const circuits = new Map<string, Circuit>();

  function rowOf(name: string): ProviderRow | undefined {
    return catalogue.current().providers.get(name) ?? (name === SANDBOX.name ? SANDBOX : undefined);
  }

  /** Throws ProviderError only: what cannot be made is left for the next route. */
  function providerOf(name: string): Provider {
    const row = rowOf(name);
    if (row === undefined) throw new ProviderError('misconfigured', `the catalogue has no provider ${name}`);
    const known = providers.get(name);
    if (known?.row === row) return known.provider;
    const fingerprint = JSON.stringify(row); // the catalogue was read again: most of it is as before
    if (known?.fingerprint === fingerprint) {
      known.row = row;
      return known.provider;
    }
    const provider = makeFrom(row, env);
    void known?.provider.close(REPLACED_GRACE_MS);
    providers.set(name, { provider, row, fingerprint });
    return provider;
  }

  function routesOf(modelId: string, only: string | undefined): readonly Route[] {
    const routes = catalogue.current().models.get(modelId)?.routes ?? [];
    return only === undefined ? routes : routes.filter(({ provider }) => provider === only);
  }

  /** The sandbox has none: its callers direct its errors, which must not reach others. */
  function circuitOf(route: Route): Circuit | undefined {
    if (rowOf(route.provider)?.kind === SANDBOX.kind) return undefined;
    const key = `${route.provider}\n${route.upstreamModel}`;
    let circuit = circuits.get(key);
    if (circuit === undefined) {
      circuit = new Circuit(CIRCUIT);
      circuits.set(key, circuit);
    }
    return circuit;
  }

  return {
    async call({ modelId, isTest, signal, times, provider: only }, work, hasBegun = () => false) {
      const routes = isTest ? [SANDBOX_ROUTE] : inOrder(routesOf(modelId, only));
      let lastError: unknown;
      for (const [index, route] of routes.entries()) {
        const circuit = circuitOf(route);
        const pass = circuit?.enter();
        if (circuit !== undefined && pass === undefined) {
          lastError = new ProviderError('unavailable', `the circuit of ${route.provider} is open`);
          continue;
        }
        const isLast = !routes.slice(index + 1).some((other) => circuitOf(other)?.isOpen !== true);
        const watch = pass && new Watch({ pass, times, signal, isLast });
        try {
          const result = await tryAgain(
            () => {
              const provider = providerOf(route.provider);
              return work(watch === undefined ? provider : new WatchedProvider(provider, watch), route);
            },
            (error) => isWorthRetrying(error) && !hasBegun() && !signal.aborted,
            signal,
          );
          pass?.succeeded();
          return result;
        } catch (error) {
          watch?.tell(error);
          if (signal.aborted || hasBegun() || !(error instanceof ProviderError) || !error.isRoutable)
            throw error;
          lastError = error;
        } finally {
          watch?.over();
        }
      }
      throw lastError ?? new ProviderError('misconfigured', `no route for ${modelId}`);
    },
    async close() {
      await Promise.all([...providers.values()].map(({ provider }) => provider.close()));
    },
  };
}

function makeFrom(row: ProviderRow, env: Readonly<Record<string, string | undefined>>): Provider {
  try {
    return makeProvider({
      name: row.name,
      kind: row.kind,
      baseUrl: row.baseUrl ?? undefined,
      credential: row.credentialEnv === null ? undefined : env[row.credentialEnv],
    });
  } catch (error) {
    throw new ProviderError('misconfigured', `provider ${row.name} cannot be made`, { cause: error });
  }
}

/** The policy is made only once a first try has failed: nearly all succeed. */
async function tryAgain<T>(
  work: () => Promise<T>,
  isWorthIt: (error: unknown) => boolean,
  signal: AbortSignal,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const tries = [() => Promise.reject<T>(error)];
    const again = retry(handleWhen(isWorthIt), { maxAttempts: TRIES - 1, backoff: pause });
    return await again.execute(() => (tries.pop() ?? work)(), signal);
  }
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
function inOrder(routes: readonly Route[]): readonly Route[] {
  if (routes.length < 2) return routes;
  return routes
    .map((route) => ({ route, draw: Math.random() ** (1 / route.weight) }))
    .toSorted((a, b) => a.route.priority - b.route.priority || b.draw - a.draw)
    .map(({ route }) => route);
}
