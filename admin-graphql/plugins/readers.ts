/**
 * A reader changes nothing. PostgreSQL sees to it by the rights of operator_reader and a read-only transaction; this says it
 * before anything runs, and alone where the platform has no such roles.
 */
import { GraphQLError, getOperationAST } from 'postgraphile/graphql';
import type { RefusalCode } from '../refusal.ts';

export const readersPlugin: GraphileConfig.Plugin = {
  name: 'AdminReadersPlugin',
  version: '1.0.0',
  grafast: {
    middleware: {
      execute(next, { args }) {
        const operation = getOperationAST(args.document, args.operationName)?.operation;
        const { operator } = args.contextValue as Partial<Grafast.Context>;
        if (operation === 'query' || operator?.role === 'operator') return next();
        const code: RefusalCode = 'forbidden';
        return {
          errors: [new GraphQLError('This needs a token with the role operator.', { extensions: { code } })],
        };
      },
    },
  },
};
