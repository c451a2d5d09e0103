/**
 * Lists are filtered and ordered by indexed columns only, so that no query of an operator reads a large table through. Views
 * have no indexes to look at, so their comments say it: `@filterable` (equality) and `@sortable` (order, and equality). A test
 * holds every such column against the indexes of the table below. `@defaultOrder` names a view's own order.
 */
import 'postgraphile';

export const indexedColumnsPlugin: GraphileConfig.Plugin = {
  name: 'AdminIndexedColumnsPlugin',
  version: '1.0.0',
  after: ['PgConnectionArgOrderByDefaultValuePlugin'],
  schema: {
    entityBehavior: {
      pgCodecAttribute: {
        override: {
          provides: ['indexedColumns'],
          callback(behavior, [codec, attributeName]) {
            const tags = codec.attributes[attributeName]?.extensions?.tags;
            const isSortable = tags?.sortable !== undefined;
            const isFilterable = isSortable || tags?.filterable !== undefined;
            return [
              behavior,
              isSortable ? 'attribute:orderBy' : '-attribute:orderBy',
              isFilterable ? 'attribute:filterBy' : '-attribute:filterBy',
            ];
          },
        },
      },
    },
    hooks: {
      GraphQLObjectType_fields_field_args_arg(arg, build, context) {
        const { argName, pgFieldResource } = context.scope;
        const order = pgFieldResource?.codec.extensions?.tags?.defaultOrder;
        if (argName !== 'orderBy' || pgFieldResource === undefined || typeof order !== 'string') return arg;
        const orders = build.getTypeByName(
          build.inflection.orderByType(build.inflection.tableType(pgFieldResource.codec)),
        );
        if (!build.graphql.isEnumType(orders)) return arg;
        const value = orders.getValue(order);
        if (value === null || value === undefined) {
          throw new Error(`@defaultOrder ${order} is no order of ${pgFieldResource.name}`);
        }
        return { ...arg, defaultValue: [value.value] };
      },
    },
  },
};
