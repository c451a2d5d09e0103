/**
 * The catalogue as a YAML file (docs/catalogue.md). Importing checks it here and lets one SQL function write all of it or
 * nothing; exporting writes the file that imports again to the same.
 */
import { CatalogueFileError } from './error.ts';
import { type Amounts, amountsOf, type CatalogueDocument, formatCatalogue } from './format.ts';
import { type CatalogueFile, type KnownNames, parseCatalogueFile } from './parse.ts';
import { PRICE_UNITS } from './schema.ts';

/** A pool, a client, or a client that is in a transaction already. */
export interface CatalogueClient {
  query(query: { text: string; values: unknown[] }): Promise<{ rows: readonly unknown[] }>;
}

export interface ImportOptions {
  /** Retire the models that the file does not name. */
  readonly prune?: boolean;
}

interface PriceChange {
  readonly model: string;
  /** '' where the model's prices have none. */
  readonly size: string;
  readonly quality: string;
  /** The amounts by their names in the file. */
  readonly before: Readonly<Record<string, number>>;
  readonly after: Readonly<Record<string, number>>;
  readonly effectiveAt: Date;
}

export interface CatalogueImport {
  /** How many the file has. */
  readonly providers: number;
  readonly models: number;
  readonly voices: number;
  /** Ids of models that were taken off the offer. */
  readonly retired: readonly string[];
  /** Changes of prices there were before; an empty list when the import changed none. */
  readonly priceChanges: readonly PriceChange[];
}

const READ_KNOWN = `
  select (select coalesce(json_agg(name), '[]') from app.providers) as providers,
         (select coalesce(json_agg(json_build_object('id', id, 'type', type, 'isRetired', retired_at is not null)), '[]')
            from app.models) as models`;
const READ_DOCUMENT = 'select app.catalogue_document() as document';
const IMPORT = 'select app.import_catalogue($1, $2, $3) as report';

interface KnownRow {
  readonly providers: readonly string[];
  readonly models: readonly { readonly id: string; readonly type: string; readonly isRetired: boolean }[];
}

interface PriceRow extends Amounts {
  readonly effective_at: string;
}

interface Report {
  readonly retired: readonly string[];
  readonly price_changes: readonly {
    readonly model: string;
    readonly size: string;
    readonly quality: string;
    readonly before: PriceRow;
    readonly after: PriceRow;
  }[];
}

/**
 * Importing the same file again changes nothing. Throws a CatalogueFileError with every problem, and then nothing was
 * written; within a transaction of the caller's, that transaction can only be rolled back.
 */
export async function importCatalogue(
  client: CatalogueClient,
  text: string,
  fileName: string,
  actor: string,
  { prune = false }: ImportOptions = {},
): Promise<CatalogueImport> {
  const { rows } = await client.query({ text: READ_KNOWN, values: [] });
  const file = parseCatalogueFile(text, fileName, knownNames(rows[0] as KnownRow, prune));
  const { retired, price_changes } = await write(client, file, prune, actor);
  return {
    providers: file.providers.length,
    models: file.models.length,
    voices: file.voices.length,
    retired,
    priceChanges: price_changes.map(({ before, after, ...which }) => ({
      ...which,
      before: amountsOf(before),
      after: amountsOf(after),
      effectiveAt: new Date(after.effective_at),
    })),
  };
}

export interface CatalogueExport {
  readonly yaml: string;
  readonly providers: number;
  readonly models: number;
  readonly voices: number;
}

/** Providers, the models on offer, their prices in force and announced, and voices. */
export async function exportCatalogue(client: CatalogueClient): Promise<CatalogueExport> {
  const { rows } = await client.query({ text: READ_DOCUMENT, values: [] });
  const { document } = rows[0] as { document: CatalogueDocument };
  const { providers, models, voices } = document;
  return {
    yaml: formatCatalogue(document),
    providers: providers.length,
    models: models.length,
    voices: voices.length,
  };
}

function knownNames({ providers, models }: KnownRow, prune: boolean): KnownNames {
  return {
    providers: new Set(providers),
    types: new Map(models.map(({ id, type }) => [id, type])),
    offered: new Set(prune ? [] : models.filter(({ isRetired }) => !isRetired).map(({ id }) => id)),
  };
}

const SERIALIZATION_FAILURE = '40001';
const MAX_TRIES = 5;

async function write(
  client: CatalogueClient,
  file: CatalogueFile,
  prune: boolean,
  actor: string,
): Promise<Report> {
  try {
    return await writeOnce(client, file, prune, actor);
  } catch (error) {
    const { constraint, detail } = error as { constraint?: unknown; detail?: unknown };
    if (constraint !== 'catalogue_prices_refused' || typeof detail !== 'string') throw error;
    for (const { n, problem } of JSON.parse(detail) as { n: number; problem: string }[]) {
      file.problems.add(file.prices[n]?.path ?? [], problem);
    }
    throw new CatalogueFileError(file.problems.toError().problems, { cause: error });
  }
}

/** Again when another import was written meanwhile; within a transaction of the caller's that cannot help, and the error says so. */
async function writeOnce(
  client: CatalogueClient,
  file: CatalogueFile,
  prune: boolean,
  actor: string,
): Promise<Report> {
  const values = [JSON.stringify(rowsOf(file)), prune, actor];
  for (let tries = 1; ; tries += 1) {
    try {
      const { rows } = await client.query({ text: IMPORT, values });
      return (rows[0] as { report: Report }).report;
    } catch (error) {
      if ((error as { code?: unknown }).code !== SERIALIZATION_FAILURE || tries === MAX_TRIES) throw error;
    }
  }
}

/** The file in the columns of the tables. */
function rowsOf({ providers, models, voices, prices }: CatalogueFile): Record<string, unknown> {
  return {
    providers,
    models: models.map(({ routes: _routes, pricing: _pricing, recommended = false, ...model }) => ({
      ...model,
      recommended,
    })),
    routes: models.flatMap(({ id, routes }) =>
      routes.map(({ priority = 0, weight = 1, ...route }) => ({ ...route, model_id: id, priority, weight })),
    ),
    voices: voices.map(({ model, tagline = '', ...voice }) => ({ ...voice, tagline, model_id: model })),
    prices: prices.map(({ modelId, type, price }, n) => ({
      ...price,
      n,
      model_id: modelId,
      unit: PRICE_UNITS[type],
      size: price.size ?? '',
      quality: price.quality ?? '',
      effective_at: price.effective_at === undefined ? null : inUtc(price.effective_at),
    })),
  };
}

/** PostgreSQL would read a date alone in the session's zone. */
function inUtc(time: string): string {
  return time.length === 10 ? `${time}T00:00:00Z` : time;
}
