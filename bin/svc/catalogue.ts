/** `svc catalog import` and `svc catalog export`. */
import { readFile } from 'node:fs/promises';
import { type CatalogueImport, exportCatalogue, importCatalogue } from '../../core/catalogue-file/index.ts';
import type { Config } from '../../core/config.ts';
import { withDatabase } from './database.ts';
import { Failure, type Outcome } from './failure.ts';

export async function importFile(
  config: Config,
  file: string,
  options: { readonly prune: boolean },
  actor = 'cli',
): Promise<Outcome> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Failure(`${file} cannot be read: ${error.code ?? error.message}`, { cause: error });
  });
  return withDatabase(config, async (pool) => {
    const done = await importCatalogue(pool, text, file, actor, options);
    const { providers, models, voices } = done;
    return {
      json: { providers, models, voices },
      text: `Imported ${providers} providers, ${models} models, ${voices} voices`,
      notes: notesOf(done),
    };
  });
}

/** What an import changed that somebody should know of. */
function notesOf({ priceChanges, retired }: CatalogueImport): string[] {
  const amounts = (row: Readonly<Record<string, number>>): string =>
    Object.entries(row)
      .map(([name, ap]) => `${name} ${ap}`)
      .join(', ');
  return [
    ...priceChanges.map(({ model, size, quality, before, after, effectiveAt }) => {
      const which = [model, size, quality].filter((word) => word !== '').join(' ');
      return `Price of ${which}: ${amounts(before)} → ${amounts(after)} from ${effectiveAt.toISOString()}`;
    }),
    ...retired.map((model) => `Retired model ${model}`),
  ];
}

export function exportFile(config: Config): Promise<Outcome> {
  return withDatabase(config, async (pool) => {
    const { yaml, providers, models, voices } = await exportCatalogue(pool);
    return { json: { providers, models, voices, yaml }, text: yaml.trimEnd() };
  });
}
