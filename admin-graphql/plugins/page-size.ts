/**
 * Pages: 20 rows unless asked for, 100 at most, by cursor alone (an offset reads what it skips).
 */
import { lambda } from 'postgraphile/grafast';
import { Refusal } from '../refusal.ts';

export const DEFAULT_PAGE_ROWS = 20;
export const MAX_PAGE_ROWS = 100;

/** The rows to read of a connection: `first`, unless `last` was asked for, in which case null. */
function pageRows([first, last]: readonly unknown[]): number | null {
  for (const rows of [first, last]) {
    if (typeof rows !== 'number') continue;
    if (rows < 1 || rows > MAX_PAGE_ROWS) {
      throw new Refusal(`A page has from 1 to ${MAX_PAGE_ROWS} rows.`, {
        code: 'invalid_parameter',
        details: { param: rows === first ? 'first' : 'last', maximum: MAX_PAGE_ROWS },
      });
    }
  }
  if (typeof first === 'number') return first;
  return typeof last === 'number' ? null : DEFAULT_PAGE_ROWS;
}

export const pageSizePlugin: GraphileConfig.Plugin = {
  name: 'AdminPageSizePlugin',
  version: '1.0.0',
  after: ['PgFirstLastBeforeAfterArgsPlugin'],
  schema: {
    hooks: {
      GraphQLObjectType_fields_field(field, _build, context) {
        if (context.scope.isPgFieldConnection !== true) return field;
        const { plan } = field;
        if (plan === undefined) throw new Error(`${context.scope.fieldName} has no plan to page`);
        return {
          ...field,
          plan($parent, fieldArgs, info) {
            const $connection = plan($parent, fieldArgs, info);
            const hasLast = info.field.args.some((arg) => arg.name === 'last');
            const $sizes = [fieldArgs.getRaw('first'), ...(hasLast ? [fieldArgs.getRaw('last')] : [])];
            $connection.setFirst(lambda($sizes, pageRows));
            return $connection;
          },
        };
      },
      GraphQLObjectType_fields_field_args(args, _build, context) {
        if (context.scope.isPgFieldConnection !== true || args.first === undefined) return args;
        const { first, last, offset: _offset, ...others } = args;
        return {
          ...others,
          first: {
            type: first.type,
            description: `How many rows, from the beginning: ${DEFAULT_PAGE_ROWS} unless given, ${MAX_PAGE_ROWS} at most.`,
          },
          ...(last === undefined
            ? {}
            : {
                last: { ...last, description: `How many rows, from the end: ${MAX_PAGE_ROWS} at most.` },
              }),
        };
      },
    },
  },
};
