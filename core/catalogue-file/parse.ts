/**
 * Reads a catalogue file (docs/catalogue.md): YAML, its shape, and what its parts say of each other. All problems are found
 * at once, each with its place. The database is not asked here; what it knows already is passed in.
 */
import { LineCounter, parseDocument, visit } from 'yaml';
import { isoMicroseconds } from '../iso-time.ts';
import { isOperation } from '../operations.ts';
import { CatalogueFileError } from './error.ts';
import { type Path, Problems } from './problems.ts';
import {
  ChatModelSchema,
  type FileModel,
  type FileModelType,
  type FilePrice,
  type FileProvider,
  FileSchema,
  type FileVoice,
  MODEL_TYPES,
  OperationSchema,
  OtherModelSchema,
  PRICE_SCHEMAS,
  ProviderSchema,
  UntypedModelSchema,
  VoiceSchema,
} from './schema.ts';
import { fits, show } from './validate.ts';

const MAX_FILE_CHARACTERS = 4 * 1024 * 1024;

/** What the database holds already: a file may refer to it. */
export interface KnownNames {
  readonly providers: ReadonlySet<string>;
  /** Every model there ever was, for a model's type never changes. */
  readonly types: ReadonlyMap<string, string>;
  /** The models that stay on offer. */
  readonly offered: ReadonlySet<string>;
}

const NOTHING_KNOWN: KnownNames = { providers: new Set(), types: new Map(), offered: new Set() };

interface ModelPrice {
  readonly modelId: string;
  readonly type: FileModelType;
  readonly price: FilePrice;
  /** Where problems of this price belong: its date, else all of it. */
  readonly path: Path;
}

export interface CatalogueFile {
  readonly providers: readonly FileProvider[];
  readonly models: readonly FileModel[];
  readonly voices: readonly FileVoice[];
  readonly prices: readonly ModelPrice[];
  /** For what only the database can find wrong. */
  readonly problems: Problems;
}

interface Sections {
  readonly providers?: readonly unknown[];
  readonly models?: readonly unknown[];
  readonly voices?: readonly unknown[];
}

/** Throws a CatalogueFileError that names every problem. */
export function parseCatalogueFile(
  text: string,
  fileName: string,
  known: KnownNames = NOTHING_KNOWN,
): CatalogueFile {
  if (text.length > MAX_FILE_CHARACTERS) {
    throw new CatalogueFileError([
      `${fileName}:1:1: the file is longer than ${MAX_FILE_CHARACTERS} characters`,
    ]);
  }
  const { value, problems } = readYaml(text, fileName);
  if (!fits(FileSchema, value, [], problems) && !hasSections(value)) throw problems.toError();
  const file = new Reader(problems, known).read(value);
  if (!problems.isEmpty) throw problems.toError();
  return file;
}

function readYaml(text: string, fileName: string): { value: unknown; problems: Problems } {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, version: '1.2' });
  const problems = new Problems(fileName, lines, document);
  for (const { pos, message } of [...document.errors, ...document.warnings]) {
    problems.addAt(pos[0], message.replaceAll(/\s+/g, ' '));
  }
  visit(document, {
    Alias(_key, alias) {
      if (alias.resolve(document) !== undefined) return;
      problems.addAt(alias.range?.[0] ?? 0, `there is no anchor &${alias.source} before this alias`);
    },
  });
  if (!problems.isEmpty) throw problems.toError();
  try {
    return { value: document.toJS(), problems };
  } catch (error) {
    problems.addAt(0, (error as Error).message); // aliases that grow without end
    throw problems.toError();
  }
}

/** One pass over the sections; what is wrong is noted, and the rest is read on. */
class Reader {
  readonly #problems: Problems;
  readonly #known: KnownNames;
  readonly #providers: FileProvider[] = [];
  readonly #models: FileModel[] = [];
  readonly #voices: FileVoice[] = [];
  readonly #prices: ModelPrice[] = [];
  /** What was seen first where, by kind and name. */
  readonly #seen = new Map<string, Path>();

  constructor(problems: Problems, known: KnownNames) {
    this.#problems = problems;
    this.#known = known;
  }

  read({ providers = [], models = [], voices = [] }: Sections): CatalogueFile {
    // names first, of faulty entries too: a reference to one of those is no second mistake
    const providerNames = new Set([...this.#known.providers, ...wordsOf(providers, 'name')]);
    const types = new Map(models.map((model) => [wordOf(model, 'id'), typeOf(model)]));
    for (const [index, entry] of providers.entries()) this.#readProvider(entry, ['providers', index]);
    for (const [index, entry] of models.entries()) this.#readModel(entry, ['models', index], providerNames);
    for (const [index, entry] of voices.entries()) {
      this.#readVoice(entry, ['voices', index], providerNames, types);
    }
    return {
      providers: this.#providers,
      models: this.#models,
      voices: this.#voices,
      prices: this.#prices,
      problems: this.#problems,
    };
  }

  #readProvider(entry: unknown, path: Path): void {
    this.#refuseSecond('provider', wordOf(entry, 'name'), [...path, 'name']);
    if (!fits(ProviderSchema, entry, path, this.#problems)) return;
    if (entry.base_url === undefined && entry.kind !== 'sandbox') {
      this.#problems.add(
        path,
        `base_url is missing: a provider of kind ${entry.kind} needs an http:// or https:// address`,
      );
    }
    this.#providers.push(entry);
  }

  #readModel(entry: unknown, path: Path, providerNames: ReadonlySet<string>): void {
    const id = wordOf(entry, 'id');
    const type = typeOf(entry);
    this.#refuseSecond('model', id, [...path, 'id']);
    this.#refuseNewType(id, type, [...path, 'type']);
    this.#refuseSecondDefault(entry, type, [...path, 'recommended']);
    this.#checkRoutes(entry, [...path, 'routes'], providerNames);
    if (type !== undefined) this.#readPrices(entry, [...path, 'pricing'], id ?? '', type);

    if (id !== undefined && isOperation(id)) {
      if (fits(OperationSchema, entry, path, this.#problems)) this.#models.push({ ...entry, routes: [] });
      return;
    }
    const schema =
      type === undefined ? UntypedModelSchema : type === 'chat' ? ChatModelSchema : OtherModelSchema;
    if (!fits<typeof UntypedModelSchema>(schema as typeof UntypedModelSchema, entry, path, this.#problems))
      return;
    const { max_tokens, context_tokens } = entry;
    if (max_tokens !== undefined && context_tokens !== undefined && max_tokens > context_tokens) {
      this.#problems.add(
        [...path, 'max_tokens'],
        `max_tokens must not be above context_tokens (${context_tokens}), not ${max_tokens}`,
      );
    }
    this.#models.push(entry);
  }

  #refuseNewType(id: string | undefined, type: FileModelType | undefined, path: Path): void {
    const before = id === undefined ? undefined : this.#known.types.get(id);
    if (type === undefined || before === undefined || before === type) return;
    this.#problems.add(
      path,
      `the type of model ${show(id)} is ${before} and never changes; give the other model another id`,
    );
  }

  #refuseSecondDefault(entry: unknown, type: FileModelType | undefined, path: Path): void {
    const { recommended } = (entry ?? {}) as { recommended?: unknown };
    if (type === undefined || recommended !== true) return;
    const key = `recommended\n${type}`;
    const first = this.#seen.get(key);
    if (first === undefined) this.#seen.set(key, path);
    else {
      const line = this.#problems.lineOf(first);
      this.#problems.add(
        path,
        `a second recommended model of type ${type}, of which one is the default; the first is in line ${line}`,
      );
    }
  }

  #checkRoutes(entry: unknown, path: Path, providerNames: ReadonlySet<string>): void {
    const routes = (entry as { routes?: unknown } | null)?.routes;
    if (!Array.isArray(routes)) return; // told with the model's other keys
    for (const [index, route] of routes.entries()) {
      const provider = wordOf(route, 'provider');
      const upstreamModel = wordOf(route, 'upstream_model');
      this.#refuseUnknown('provider', provider, providerNames, [...path, index, 'provider']);
      if (provider === undefined || upstreamModel === undefined) continue;
      const name = `${provider} ${upstreamModel}`;
      this.#refuseSecond('route', name, [...path, index], `${path.join()} ${name}`);
    }
  }

  #readPrices(entry: unknown, path: Path, modelId: string, type: FileModelType): void {
    const { pricing } = entry as { pricing?: unknown };
    if (pricing === undefined) return; // told with the model's other keys
    if (Array.isArray(pricing) && pricing.length === 0) {
      this.#problems.add(path, 'pricing must be a price or a list of prices, not an empty list');
    }
    for (const [index, row] of (Array.isArray(pricing) ? pricing : [pricing]).entries()) {
      const at = Array.isArray(pricing) ? [...path, index] : path;
      if (!fits(PRICE_SCHEMAS[type], row, at, this.#problems)) continue;
      const price = row as FilePrice;
      const time = price.effective_at === undefined ? undefined : isoMicroseconds(price.effective_at);
      const what = [price.size, price.quality].filter((word) => word !== undefined).join(' ');
      const when = price.effective_at === undefined ? 'without effective_at' : `from ${price.effective_at}`;
      this.#refuseSecond('price', [what, when].join(' ').trim(), at, `${path.join()} ${what} ${time}`);
      this.#prices.push({
        modelId,
        type,
        price,
        path: price.effective_at === undefined ? at : [...at, 'effective_at'],
      });
    }
  }

  #readVoice(
    entry: unknown,
    path: Path,
    providerNames: ReadonlySet<string>,
    types: ReadonlyMap<string | undefined, string | undefined>,
  ): void {
    const model = wordOf(entry, 'model');
    const at = [...path, 'model'];
    const { types: knownTypes, offered } = this.#known;
    this.#refuseSecond('voice', wordOf(entry, 'slug'), [...path, 'slug']);
    this.#refuseUnknown('provider', wordOf(entry, 'provider'), providerNames, [...path, 'provider']);
    this.#refuseUnknown('model', model, new Set([...types.keys(), ...offered]), at);
    const type = types.get(model) ?? knownTypes.get(model ?? '') ?? 'speech';
    if (type !== 'speech') {
      this.#problems.add(at, `model ${show(model)} is of type ${type}; a voice needs a speech model`);
    }
    if (fits(VoiceSchema, entry, path, this.#problems)) this.#voices.push(entry);
  }

  /** A name that is missing or no text is told elsewhere. */
  #refuseSecond(kind: string, name: string | undefined, path: Path, identity = name): void {
    if (name === undefined) return;
    const key = `${kind}\n${identity}`;
    const first = this.#seen.get(key);
    if (first === undefined) this.#seen.set(key, path);
    else {
      const line = this.#problems.lineOf(first);
      this.#problems.add(path, `${kind} ${show(name)} is given twice; the first is in line ${line}`);
    }
  }

  #refuseUnknown(
    kind: 'provider' | 'model',
    name: string | undefined,
    names: ReadonlySet<string | undefined>,
    path: Path,
  ): void {
    if (name === undefined || names.has(name)) return;
    const all = [...names].filter((word) => word !== undefined).sort();
    const some = all.length > 20 ? [...all.slice(0, 20), '…'] : all;
    this.#problems.add(
      path,
      `there is no ${kind} ${show(name)}; ${all.length === 0 ? 'there is none at all' : `there are: ${some.join(', ')}`}`,
    );
  }
}

/** Whether its sections can be read, whatever else is wrong with the file as a whole: references need all of them. */
function hasSections(value: unknown): value is Sections {
  if (typeof value !== 'object' || value === null) return false;
  const { providers = [], models = [], voices = [] } = value as Record<string, unknown>;
  return [providers, models, voices].every((section) => Array.isArray(section));
}

function wordOf(entry: unknown, key: string): string | undefined {
  const value: unknown =
    typeof entry === 'object' && entry !== null ? (entry as Record<string, unknown>)[key] : undefined;
  return typeof value === 'string' ? value : undefined;
}

function typeOf(model: unknown): FileModelType | undefined {
  const word = wordOf(model, 'type');
  return MODEL_TYPES.find((type) => type === word);
}

function wordsOf(entries: readonly unknown[], key: string): string[] {
  return entries.map((entry) => wordOf(entry, key)).filter((word) => word !== undefined);
}
