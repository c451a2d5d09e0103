/** Writes the catalogue of the database as the YAML file that imports again to the same, announced price changes included. */
import { Document, isMap, visit } from 'yaml';
import type { FileProvider, FileVoice } from './schema.ts';

/** app.catalogue_document() */
export interface CatalogueDocument {
  readonly providers: readonly Nullable<FileProvider>[];
  readonly models: readonly {
    readonly id: string;
    readonly type: string;
    readonly max_tokens: number | null;
    readonly context_tokens: number | null;
    readonly recommended: boolean;
    readonly routes: readonly {
      readonly provider: string;
      readonly upstream_model: string;
      readonly priority: number;
      readonly weight: number;
    }[];
    readonly pricing: readonly {
      readonly size: string;
      readonly quality: string;
      readonly ap_in_per_1k: number | null;
      readonly ap_out_per_1k: number | null;
      readonly ap: number | null;
      readonly effective_at: string | null;
    }[];
  }[];
  readonly voices: readonly Required<FileVoice>[];
}
type Nullable<T> = { readonly [Key in keyof T]: T[Key] | null };

export function formatCatalogue({ providers, models, voices }: CatalogueDocument): string {
  // a database from before there could be one default of a type may have more: the first is what callers get
  const defaults = new Map(
    models
      .filter(({ recommended }) => recommended)
      .toReversed()
      .map(({ type, id }) => [type, id]),
  );
  return toYaml({
    providers: providers.map(({ name, kind, base_url, credential_env }) =>
      present({ name, kind, base_url, credential_env }),
    ),
    models: models.map(({ routes, pricing, ...model }) => ({
      ...present({
        id: model.id,
        type: model.type,
        recommended: defaults.get(model.type) === model.id || null,
        max_tokens: model.max_tokens,
        context_tokens: model.context_tokens,
      }),
      ...(routes.length === 0
        ? {}
        : {
            routes: routes.map(({ provider, upstream_model, priority, weight }) =>
              present({
                provider,
                upstream_model,
                priority: priority === 0 ? null : priority,
                weight: weight === 1 ? null : weight,
              }),
            ),
          }),
      pricing: pricing.map((price) =>
        present({
          size: price.size || null,
          quality: price.quality || null,
          ...amountsOf(price),
          effective_at: price.effective_at?.replace(/\.?0+Z$/, 'Z') ?? null,
        }),
      ),
    })),
    voices: voices.map(({ slug, name, tagline, provider, upstream_voice, model }) =>
      present({ slug, name, tagline: tagline || null, provider, upstream_voice, model }),
    ),
  });
}

export interface Amounts {
  readonly ap_in_per_1k: number | null;
  readonly ap_out_per_1k: number | null;
  readonly ap: number | null;
}

/** The amounts of a price, by their names in the file. */
export function amountsOf(price: Amounts): Record<string, number> {
  const { ap_in_per_1k, ap_out_per_1k, ap } = price;
  if (ap !== null) return { ap };
  return { ap_in_per_1k: ap_in_per_1k ?? 0, ap_out_per_1k: ap_out_per_1k ?? 0 };
}

/** A map without the keys that say nothing. */
function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

/** Entries in block style, their routes and prices one a line. */
function toYaml(content: Readonly<Record<string, unknown>>): string {
  const document = new Document(content, { aliasDuplicateObjects: false });
  document.commentBefore =
    ' The catalogue: providers, models and voices; prices in AP. See docs/catalogue.md';
  visit(document, {
    Map(_key, map, ancestors) {
      // document › sections › section › entries › entry › rows › row
      if (ancestors.filter((owner) => isMap(owner)).length === 2) map.flow = true;
    },
  });
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}
