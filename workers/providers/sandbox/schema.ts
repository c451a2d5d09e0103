/**
 * A value that is valid for a JSON schema, the same for the same schema: the sandbox's structured answers and tool
 * arguments. Covers what structured outputs of the convention allow, and `allOf`, formats and common patterns besides;
 * not `not`, `if` and `dependentSchemas`. Bounded, since schemas come from callers: a schema that asks for more than the
 * sandbox makes is rejected, not cut to something invalid.
 */
import { ProviderError } from '../provider.ts';
import { sampleNumber, sampleString } from './schema-leaves.ts';

const MAX_NODES = 5_000;
/** Of the value as JSON, roughly. */
const MAX_CHARACTERS = 200_000;
/** Steps of reading the schema: names, alternatives and references looked at, each time they are. */
const MAX_STEPS = 100_000;
/** Below this depth optional properties are left out and the shallowest alternative is taken, so that recursion ends. */
const SHALLOW_DEPTH = 4;
const MAX_DEPTH = 64;

type Schema = Readonly<Record<string, unknown>>;

/** What was spent so far; the limits are for all schemas that share it. */
export interface SampleBudget {
  nodes: number;
  characters: number;
  steps: number;
}

export function sampleOfSchema(
  schema: unknown,
  budget: SampleBudget = { nodes: 0, characters: 0, steps: 0 },
): unknown {
  return new Sampler(schema, budget).sample(schema, 0, '');
}

class Sampler {
  readonly #root: unknown;
  readonly #budget: SampleBudget;

  constructor(root: unknown, budget: SampleBudget) {
    this.#root = root;
    this.#budget = budget;
  }

  /** `salt` tells items of one array apart where they must be unique. */
  sample(given: unknown, depth: number, salt: string): unknown {
    this.#budget.nodes += 1;
    if (this.#budget.nodes > MAX_NODES || depth > MAX_DEPTH) throw tooLarge();
    if (!isSchema(given)) return given === false ? null : 'sandbox';
    const schema = this.#resolve(given, 0);
    if ('const' in schema) return this.#given(schema.const);
    if (Array.isArray(schema.enum) && schema.enum.length > 0)
      return this.#given(schema.enum[Number(salt) % schema.enum.length]);
    const alternatives = alternativesOf(schema);
    if (alternatives !== undefined)
      return this.sample(this.#choose(schema, alternatives, depth), depth + 1, salt);
    switch (typeOf(schema)) {
      case 'object':
        return this.#object(schema, depth);
      case 'array':
        return this.#array(schema, depth);
      case 'integer':
        return sampleNumber(schema, true, salt);
      case 'number':
        return sampleNumber(schema, false, salt);
      case 'boolean':
        return salt === '' || Number(salt) % 2 === 0;
      case 'null':
        return null;
      default:
        return this.#given(sampleOr(sampleString(schema, salt)));
    }
  }

  #given(value: unknown): unknown {
    this.#budget.characters += typeof value === 'string' ? value.length : JSON.stringify(value).length;
    if (this.#budget.characters > MAX_CHARACTERS) throw tooLarge();
    return value;
  }

  #spend(steps: number): void {
    this.#budget.steps += steps;
    if (this.#budget.steps > MAX_STEPS) throw tooLarge();
  }

  /** Follows `$ref` and merges `allOf`, until neither is left. */
  #resolve(schema: Schema, depth: number): Schema {
    if (depth > MAX_DEPTH) throw tooLarge();
    this.#spend(1);
    if (typeof schema.$ref === 'string') {
      const { $ref, ...rest } = schema;
      const target = this.#lookUp($ref as string);
      return this.#resolve(isSchema(target) ? this.#merge(target, rest) : rest, depth + 1);
    }
    if (Array.isArray(schema.allOf)) {
      const { allOf, ...rest } = schema;
      let merged: Schema = rest;
      for (const part of allOf as unknown[])
        if (isSchema(part)) merged = this.#merge(this.#resolve(part, depth + 1), merged);
      return this.#resolve(merged, depth + 1);
    }
    return schema;
  }

  #lookUp(reference: string): unknown {
    let target: unknown = this.#root;
    if (!reference.startsWith('#')) return undefined;
    for (const step of reference.split('/').slice(1)) {
      const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
      target =
        typeof target === 'object' && target !== null && Object.hasOwn(target, key)
          ? (target as Record<string, unknown>)[key]
          : undefined;
    }
    return target;
  }

  /** The first alternative; deep down, the one that leads least further. */
  #choose(schema: Schema, alternatives: readonly unknown[], depth: number): unknown {
    const { anyOf: _anyOf, oneOf: _oneOf, ...rest } = schema;
    this.#spend(alternatives.length);
    const ranked =
      depth < SHALLOW_DEPTH
        ? alternatives
        : [...alternatives].sort((left, right) => this.#weight(left) - this.#weight(right));
    const chosen = ranked[0];
    return isSchema(chosen) ? this.#merge(this.#resolve(chosen, 0), rest) : rest;
  }

  #merge(base: Schema, over: Schema): Schema {
    if (Object.keys(over).length === 0) return base;
    for (const side of [base, over])
      this.#spend(
        Object.keys(side).length + (isSchema(side.properties) ? Object.keys(side.properties).length : 0),
      );
    return merge(base, over);
  }

  #weight(given: unknown): number {
    if (!isSchema(given)) return 0;
    const schema = this.#resolve(given, 0);
    if ('const' in schema || Array.isArray(schema.enum)) return 0;
    const type = typeOf(schema);
    if (type === 'null') return 0;
    if (type === 'object') return 2 + listOf(schema.required).length;
    if (type === 'array') return integerOf(schema.minItems, 0) === 0 ? 1 : 3;
    return alternativesOf(schema) === undefined ? 1 : 2;
  }

  #object(schema: Schema, depth: number): Record<string, unknown> {
    const properties = isSchema(schema.properties) ? schema.properties : {};
    const required = new Set(listOf(schema.required).filter((name) => typeof name === 'string'));
    const value: Record<string, unknown> = {};
    const names = [
      ...Object.keys(properties),
      ...[...required].filter((name) => !Object.hasOwn(properties, name)),
    ];
    this.#spend(names.length);
    for (const name of names) {
      if (depth >= SHALLOW_DEPTH && !required.has(name)) continue;
      const property = Object.hasOwn(properties, name) ? properties[name] : this.#additional(schema);
      if (property === false) continue;
      this.#budget.characters += name.length;
      Object.defineProperty(value, name, {
        value: this.sample(property, depth + 1, ''),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    const missing = integerOf(schema.minProperties, 0) - Object.keys(value).length;
    for (let extra = 1; extra <= missing; extra += 1) {
      value[`sandbox_${extra}`] = this.sample(this.#additional(schema), depth + 1, '');
    }
    return value;
  }

  #additional(schema: Schema): unknown {
    return isSchema(schema.additionalProperties) ? schema.additionalProperties : true;
  }

  #array(schema: Schema, depth: number): unknown[] {
    const prefix = Array.isArray(schema.prefixItems) ? (schema.prefixItems as unknown[]) : [];
    const least = integerOf(schema.minItems, 0);
    const most = integerOf(schema.maxItems, Number.POSITIVE_INFINITY);
    const wanted = Math.min(
      most,
      Math.max(least, prefix.length, depth < SHALLOW_DEPTH && schema.items !== false ? 1 : 0),
    );
    const items: unknown[] = [];
    for (let index = 0; index < wanted; index += 1) {
      items.push(
        this.sample(
          index < prefix.length ? prefix[index] : (schema.items ?? true),
          depth + 1,
          schema.uniqueItems === true && index > 0 ? String(index) : '',
        ),
      );
    }
    return items;
  }
}

/** What is no percent encoding is the name as it stands. */
function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

function typeOf(schema: Schema): string {
  const { type } = schema;
  if (typeof type === 'string') return type;
  if (Array.isArray(type))
    return type.find((name): name is string => typeof name === 'string' && name !== 'null') ?? 'null';
  if (isSchema(schema.properties) || Array.isArray(schema.required)) return 'object';
  if (schema.items !== undefined || Array.isArray(schema.prefixItems)) return 'array';
  if (typeof schema.minimum === 'number' || typeof schema.maximum === 'number') return 'number';
  return 'string';
}

function alternativesOf(schema: Schema): readonly unknown[] | undefined {
  for (const key of ['anyOf', 'oneOf']) {
    const list = schema[key];
    if (Array.isArray(list) && list.length > 0) return list as unknown[];
  }
  return undefined;
}

/** Both schemas at once: properties and required names joined, the tighter bound of each kind, else the second's word. */
function merge(base: Schema, over: Schema): Schema {
  const merged: Record<string, unknown> = { ...base, ...over };
  if (isSchema(base.properties) && isSchema(over.properties))
    merged.properties = { ...base.properties, ...over.properties };
  if (Array.isArray(base.required) && Array.isArray(over.required))
    merged.required = [...(base.required as unknown[]), ...(over.required as unknown[])];
  for (const key of ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'])
    tighten(merged, base, over, key, Math.max);
  for (const key of ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems'])
    tighten(merged, base, over, key, Math.min);
  return merged;
}

function tighten(
  merged: Record<string, unknown>,
  base: Schema,
  over: Schema,
  key: string,
  pick: (left: number, right: number) => number,
): void {
  if (typeof base[key] === 'number' && typeof over[key] === 'number')
    merged[key] = pick(base[key], over[key]);
}

function sampleOr(text: string | undefined): string {
  if (text === undefined) throw tooLarge();
  return text;
}

function tooLarge(): ProviderError {
  return new ProviderError('rejected', 'A schema beyond the sandbox.', {
    publicMessage: '[sandbox] The JSON schema asks for a larger or deeper value than the sandbox makes.',
  });
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? (value as string[]) : [];
}

function integerOf(value: unknown, fallback: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : fallback;
}
