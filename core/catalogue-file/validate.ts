/** Checks values against the schemas with Ajv, and says what is wrong in words and at its place in the file. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { Static, TSchema } from 'typebox';
import { parseIsoTime } from '../iso-time.ts';
import type { Path, Problems } from './problems.ts';

const ajv = new Ajv({ allErrors: true, verbose: true, strict: true });
ajv.addFormat('http-address', isHttpAddress);
ajv.addFormat('iso-time', (text: string) => parseIsoTime(text) !== undefined);

const validators = new Map<TSchema, ValidateFunction>();

/** Whether a value fits; where it does not, the problems are noted below `path`. */
export function fits<Schema extends TSchema>(
  schema: Schema,
  value: unknown,
  path: Path,
  problems: Problems,
): value is Static<Schema> {
  let validate = validators.get(schema);
  if (validate === undefined) {
    validate = ajv.compile(schema);
    validators.set(schema, validate);
  }
  if (validate(value)) return true;
  const noted = new Set<string>(); // a value that fails in two ways is told once what it must be
  for (const error of validate.errors ?? []) {
    const at = [...path, ...stepsOf(error.instancePath)];
    if (error.keyword === 'required' || error.keyword === 'additionalProperties') {
      describeKey(error, at, problems);
    } else if (!noted.has(error.instancePath)) {
      noted.add(error.instancePath);
      const { description, writeOnly } = error.parentSchema as { description?: string; writeOnly?: boolean };
      const found = writeOnly && typeof error.data === 'string' ? '' : `, not ${show(error.data)}`;
      problems.add(at, `${nameOf(at)} must be ${description ?? error.message}${found}`);
    }
  }
  return false;
}

function describeKey(error: ErrorObject, at: Path, problems: Problems): void {
  const properties = (error.parentSchema as { properties: Record<string, { description?: string }> })
    .properties;
  if (error.keyword === 'required') {
    const { missingProperty } = error.params as { missingProperty: string };
    problems.add(at, `${missingProperty} is missing: ${properties[missingProperty]?.description ?? ''}`);
    return;
  }
  const { additionalProperty } = error.params as { additionalProperty: string };
  problems.addAtKey(
    [...at, additionalProperty],
    `unknown key ${show(additionalProperty)}; allowed here: ${Object.keys(properties).join(', ')}`,
  );
}

function nameOf(path: Path): string {
  const last = path.at(-1);
  if (last === undefined) return 'the file';
  return typeof last === 'string' ? last : `an entry of ${path.at(-2)}`;
}

function stepsOf(instancePath: string): (string | number)[] {
  return instancePath
    .split('/')
    .slice(1)
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step.replaceAll('~1', '/').replaceAll('~0', '~')));
}

/** A value as it can stand in a line: short, and a container by its kind only. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return Object.keys(value).length === 0 ? 'an empty map' : 'a map';
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function isHttpAddress(text: string): boolean {
  const url = URL.parse(text);
  return (
    url !== null &&
    (url.protocol === 'http:' || url.protocol === 'https:') &&
    /^https?:\/\/[^/\s]/.test(text) && // as the database checks it
    url.username === '' &&
    url.password === '' &&
    !/[?#\s]/.test(text)
  );
}
