/** `svc catalog verify`: asks each provider of the catalogue, one after the other. */
import { type Catalogue, type ProviderRow, readCatalogue } from '../../core/catalogue.ts';
import type { Config } from '../../core/config.ts';
import { makeProvider } from '../../workers/providers/index.ts';
import { withDatabase } from './database.ts';
import type { Outcome } from './failure.ts';

const TIMEOUT_MS = 20_000;

interface Verified {
  readonly provider: string;
  readonly ok: boolean;
  /** Upstream models of our routes that the provider does not list. */
  readonly missing_models: readonly string[];
  readonly error?: string;
}

export function verifyProviders(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Outcome> {
  return withDatabase(config, async (pool) => {
    const catalogue = await readCatalogue(pool);
    const providers: Verified[] = [];
    for (const row of catalogue.providers.values()) providers.push(await verify(row, catalogue, env));
    return {
      json: { providers },
      text: providers.map(describe).join('\n'),
      isProblem: providers.some(({ ok, missing_models: missing }) => !ok || missing.length > 0),
    };
  });
}

async function verify(
  row: ProviderRow,
  catalogue: Catalogue,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Verified> {
  try {
    const provider = makeProvider({
      name: row.name,
      kind: row.kind,
      baseUrl: row.baseUrl ?? undefined,
      credential: row.credentialEnv === null ? undefined : env[row.credentialEnv],
    });
    try {
      const { models } = await provider.check(AbortSignal.timeout(TIMEOUT_MS));
      const wanted = [...catalogue.models.values()]
        .flatMap((model) => model.routes)
        .filter((route) => route.provider === row.name)
        .map((route) => route.upstreamModel);
      const missing = models.length === 0 ? [] : wanted.filter((model) => !models.includes(model));
      return { provider: row.name, ok: true, missing_models: missing };
    } finally {
      await provider.close();
    }
  } catch (error) {
    return { provider: row.name, ok: false, missing_models: [], error: (error as Error).message };
  }
}

function describe({ provider, ok, missing_models: missing, error }: Verified): string {
  if (!ok) return `${provider}: failed: ${error ?? 'unknown'}`;
  return missing.length === 0
    ? `${provider}: ok`
    : `${provider}: answers, but does not list ${missing.join(', ')}`;
}
