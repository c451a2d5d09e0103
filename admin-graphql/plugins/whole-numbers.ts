/**
 * SQL's bigint (amounts of AP, numbers of rows) as JSON numbers, as everywhere in the service: PostGraphile would write strings.
 * Amounts are below 2^53 by the database's own guard (core/database.ts).
 */
import { GraphQLError, Kind, type ValueNode } from 'postgraphile/graphql';

const WHOLE = /^-?\d{1,16}$/;

function wholeNumber(value: unknown): number {
  const number =
    typeof value === 'number' || (typeof value === 'string' && WHOLE.test(value))
      ? Number(value)
      : Number.NaN;
  if (!Number.isSafeInteger(number)) {
    throw new GraphQLError('BigInt is a whole number between -(2^53 - 1) and 2^53 - 1.', {
      extensions: { code: 'invalid_parameter' },
    });
  }
  return number;
}

function literalNumber(node: ValueNode): number {
  return wholeNumber(node.kind === Kind.INT || node.kind === Kind.STRING ? node.value : undefined);
}

export const wholeNumbersPlugin: GraphileConfig.Plugin = {
  name: 'AdminWholeNumbersPlugin',
  version: '1.0.0',
  schema: {
    hooks: {
      GraphQLScalarType(scalar) {
        if (scalar.name !== 'BigInt') return scalar;
        return {
          ...scalar,
          description: 'A whole number between -(2^53 - 1) and 2^53 - 1, written as a number.',
          serialize: wholeNumber,
          parseValue: wholeNumber,
          parseLiteral: literalNumber,
        };
      },
    },
  },
};
