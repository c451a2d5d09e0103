/**
 * Whether a provider answers and with which models: for operators (`svc catalog verify`) and health, not for the hot path.
 */
import type { Provider } from './provider.ts';

export interface ProviderCheck {
  /** The model names the provider says it has; empty when it lists none. */
  readonly models: readonly string[];
}

export interface CheckableProvider extends Provider {
  /** Resolves when the provider answers and takes our credential; throws `ProviderError` otherwise. */
  check(signal?: AbortSignal): Promise<ProviderCheck>;
}
