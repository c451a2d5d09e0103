/** From a catalogue's provider to the adapter of its kind. */
import type { CheckableProvider } from './check.ts';
import { makeElevenLabsProvider } from './elevenlabs/index.ts';
import { makeOpenAiProvider } from './openai/index.ts';
import type { ProviderConfig } from './provider.ts';
import { makeSandboxProvider } from './sandbox/index.ts';

const MAKERS: Readonly<Record<string, (config: ProviderConfig) => CheckableProvider>> = {
  elevenlabs: makeElevenLabsProvider,
  openai: makeOpenAiProvider,
  sandbox: makeSandboxProvider,
};

/** Opens no connection. Throws a plain `Error`, in words for an operator, when the configuration cannot work. */
export function makeProvider(config: ProviderConfig): CheckableProvider {
  const make = Object.hasOwn(MAKERS, config.kind) ? MAKERS[config.kind] : undefined;
  if (make === undefined) {
    throw new Error(
      `Provider "${config.name}" is of the unknown kind "${config.kind}"; known kinds: ${Object.keys(MAKERS).join(', ')}.`,
    );
  }
  return make(config);
}
