/**
 * Check 5, second half: a body against its schema. The first fault is answered: an unknown field as `unsupported_parameter`,
 * anything else as `invalid_parameter`, both with the field's path in `param`.
 */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { Static, TSchema } from 'typebox';
import { ServiceError } from '../core/errors.ts';

const ajv = new Ajv({
  allErrors: false,
  discriminator: true,
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
});

export type Validator<Schema extends TSchema> = (value: unknown) => Static<Schema>;

/** Compiles once, for the first body: a tenth of a second for a large schema, which no start is to wait for. It throws ServiceError. */
export function makeValidator<Schema extends TSchema>(schema: Schema): Validator<Schema> {
  let compiled: ValidateFunction<Static<Schema>> | undefined;
  return (value) => {
    compiled ??= ajv.compile<Static<Schema>>(schema);
    const validate = compiled;
    if (validate(value)) return value;
    throw toServiceError(validate.errors ?? []);
  };
}

function toServiceError(errors: readonly ErrorObject[]): ServiceError {
  // of a union's branches the fault found deepest is the one the caller meant
  const error = errors.toSorted((a, b) => depth(b) - depth(a))[0];
  if (error === undefined) return new ServiceError('invalid_parameter', { param: 'body' });
  const path = pointerToPath(error.instancePath);
  switch (error.keyword) {
    case 'additionalProperties':
      return new ServiceError('unsupported_parameter', {
        param: join(path, String(error.params.additionalProperty)),
      });
    case 'required':
      return new ServiceError('invalid_parameter', {
        param: join(path, String(error.params.missingProperty)),
      });
    case 'discriminator':
      // the field by which the branches are told apart is missing or names none of them
      return new ServiceError('invalid_parameter', { param: join(path, String(error.params.tag)) });
    default:
      return new ServiceError('invalid_parameter', { param: path || 'body' });
  }
}

function depth(error: ErrorObject): number {
  return (
    error.instancePath.split('/').length +
    (error.keyword === 'additionalProperties' || error.keyword === 'required' ? 1 : 0)
  );
}

/** "/messages/0/content" to "messages[0].content". */
function pointerToPath(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : join(path, part)), '');
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}
