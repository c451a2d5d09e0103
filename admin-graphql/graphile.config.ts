/**
 * What PostGraphile makes of the schema `admin`: which of its plugins run, which of ours, and how a request becomes a
 * transaction (role, operator's name, read-only for readers and queries).
 */
import './graphile-environment.ts';
import { makePgService } from 'postgraphile/adaptors/pg';
import { getOperationAST } from 'postgraphile/graphql';
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber';
import type { Pool, Role } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import { makeMaskError } from './errors.ts';
import type { Operator, OperatorRole } from './operators.ts';
import { accountMutationsPlugin } from './plugins/account-mutations.ts';
import { catalogueFilePlugin } from './plugins/catalogue-file.ts';
import { indexedColumnsPlugin } from './plugins/indexed-columns.ts';
import { limitsPlugin } from './plugins/limits.ts';
import { namesPlugin } from './plugins/names.ts';
import { pageSizePlugin } from './plugins/page-size.ts';
import { readersPlugin } from './plugins/readers.ts';
import { wholeNumbersPlugin } from './plugins/whole-numbers.ts';
import { Refusal } from './refusal.ts';
import { ruruOptions } from './ruru.ts';

declare global {
  namespace Grafast {
    interface Context {
      operator: Operator;
    }
  }
}

export interface PresetOptions {
  readonly pool: Pool;
  readonly logger: Logger;
  /** Whether the platform has the roles operator_reader and operator. */
  readonly hasRoles: boolean;
}

/** The largest request: an imported catalogue. */
export const MAX_BODY_BYTES = 1024 * 1024;

const DATABASE_ROLES: Readonly<Record<OperatorRole, Role>> = {
  reader: 'operator_reader',
  operator: 'operator',
};

/** Global object ids, mutations derived from tables, fields that lead back to the root, errors that are only logged. */
const UNWANTED_PLUGINS = [
  'NodePlugin',
  'AddNodeInterfaceToSuitableTypesPlugin',
  'NodeAccessorPlugin',
  'RegisterQueryNodePlugin',
  'PgTableNodePlugin',
  'PgNodeIdAttributesPlugin',
  'PgMutationCreatePlugin',
  'PgMutationUpdateDeletePlugin',
  'PgMutationPayloadEdgePlugin',
  'PgConnectionTotalCountPlugin', // counts a table through
  'QueryQueryPlugin',
  'MutationPayloadQueryPlugin',
  'SwallowErrorsPlugin',
];

export function makePreset({ pool, logger, hasRoles }: PresetOptions): GraphileConfig.Preset {
  return {
    extends: [PostGraphileAmberPreset],
    disablePlugins: UNWANTED_PLUGINS,
    plugins: [
      namesPlugin,
      wholeNumbersPlugin,
      indexedColumnsPlugin,
      pageSizePlugin,
      limitsPlugin,
      readersPlugin,
      accountMutationsPlugin,
      catalogueFilePlugin,
    ],
    pgServices: [makePgService({ pool, schemas: ['admin'], pubsub: false })],
    schema: {
      pgForbidSetofFunctionsToReturnNull: true,
    },
    gather: { pgStrictFunctions: true },
    grafast: {
      explain: false,
      context: ({ koav3 }, { document, operationName }) => {
        const operator = koav3?.ctx.state.operator as Operator | undefined;
        if (operator === undefined) {
          throw new Refusal('No operator is known.', { code: 'not_authenticated', statusCode: 401 });
        }
        const isQuery = getOperationAST(document, operationName)?.operation === 'query';
        return { operator, pgSettings: pgSettingsOf(operator, isQuery, hasRoles) };
      },
    },
    grafserv: {
      graphqlPath: '/graphql',
      graphiqlPath: '/',
      graphiqlStaticPath: '/ruru-static/',
      graphiqlOnGraphQLGET: false,
      websockets: false,
      watch: false,
      maxRequestLength: MAX_BODY_BYTES,
      maskError: makeMaskError(logger),
    },
    ruru: ruruOptions,
  };
}

function pgSettingsOf(
  operator: Operator,
  isQuery: boolean,
  hasRoles: boolean,
): Record<string, string | undefined> {
  return {
    ...(hasRoles ? { role: DATABASE_ROLES[operator.role] } : {}),
    'svc.operator': operator.actor,
    ...(isQuery || operator.role === 'reader' ? { transaction_read_only: 'on' } : {}),
  };
}
