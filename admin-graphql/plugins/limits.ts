/**
 * How much one operation may ask for, measured before it runs: depth, fields, rows (page sizes multiplied down the tree),
 * selections, mutations. What introspection returns is bounded by graphql-js's own rule: its fields count as selections only.
 */
import {
  type ASTVisitor,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLOutputType,
  getNamedType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValidationContext,
} from 'postgraphile/graphql';
import type { RefusalCode } from '../refusal.ts';
import { DEFAULT_PAGE_ROWS, MAX_PAGE_ROWS } from './page-size.ts';

const LIMITS = { depth: 12, fields: 1000, rows: 25_000, selections: 5000, mutations: 10 } as const;

interface Size {
  /** Fields on the outermost level. */
  readonly width: number;
  /** Levels of selection sets. */
  readonly depth: number;
  readonly fields: number;
  readonly rows: number;
  /** Fields, those of introspection too, and spreads: what the server walks, each fragment as often as it is spread. */
  readonly selections: number;
}

const NOTHING: Size = { width: 0, depth: 0, fields: 0, rows: 0, selections: 0 };

export const limitsPlugin: GraphileConfig.Plugin = {
  name: 'AdminLimitsPlugin',
  version: '1.0.0',
  grafserv: {
    middleware: {
      setPreset(next, event) {
        event.validationRules.push(limitsRule);
        return next();
      },
    },
  },
};

function limitsRule(context: ValidationContext): ASTVisitor {
  const measure = makeMeasure(context);
  return {
    OperationDefinition(operation) {
      if ((rootTypeOf(context, operation) ?? null) === null) {
        // graphql-js finds it out while it executes, and throws
        const message = `There is no ${operation.operation} in this schema.`;
        context.reportError(new GraphQLError(message, { nodes: operation }));
        return false;
      }
      const size = measure(operation.selectionSet, rootTypeOf(context, operation));
      for (const what of ['depth', 'fields', 'rows', 'selections'] as const) {
        if (size[what] > LIMITS[what]) report(context, operation, what, size[what]);
      }
      if (operation.operation === 'mutation' && size.width > LIMITS.mutations) {
        report(context, operation, 'mutations', size.width);
      }
      return false;
    },
  };
}

function report(
  context: ValidationContext,
  operation: OperationDefinitionNode,
  what: keyof typeof LIMITS,
  size: number,
): void {
  const code: RefusalCode = 'query_too_large';
  context.reportError(
    new GraphQLError(`The query is too large: ${what} ${size}, at most ${LIMITS[what]}.`, {
      nodes: operation,
      extensions: { code, limit: what, maximum: LIMITS[what] },
    }),
  );
}

type Parent = GraphQLOutputType | null | undefined;

function rootTypeOf(context: ValidationContext, operation: OperationDefinitionNode): Parent {
  return context.getSchema().getRootType(operation.operation);
}

/** Measures a selection set; each fragment once, whatever the number of its spreads. */
function makeMeasure(context: ValidationContext): (selectionSet: SelectionSetNode, parent: Parent) => Size {
  const fragments = new Map<FragmentDefinitionNode, Size>();

  function measureFragment(name: string): Size {
    const fragment = context.getFragment(name);
    if (fragment === null || fragment === undefined) return NOTHING;
    const known = fragments.get(fragment);
    if (known !== undefined) return known;
    fragments.set(fragment, NOTHING); // a circle, which another rule refuses
    const type = context.getSchema().getType(fragment.typeCondition.name.value);
    const size = measure(fragment.selectionSet, isObjectType(type) ? type : undefined);
    fragments.set(fragment, size);
    return size;
  }

  function measureField(node: FieldNode, parent: Parent): Size {
    const name = node.name.value;
    const type = isObjectType(parent) ? parent.getFields()[name]?.type : undefined;
    const child =
      node.selectionSet === undefined ? NOTHING : measure(node.selectionSet, type && getNamedType(type));
    if (name.startsWith('__')) return { ...NOTHING, selections: child.selections };
    const isPage = type !== undefined && getNamedType(type).name.endsWith('Connection');
    return {
      width: 1,
      depth: child.depth,
      fields: child.fields + 1,
      rows: isPage ? pageRowsOf(node) * (1 + child.rows) : child.rows,
      selections: child.selections,
    };
  }

  function measure(selectionSet: SelectionSetNode, parent: Parent): Size {
    let [width, depth, fields, rows, selections] = [0, 0, 0, 0, 0];
    for (const selection of selectionSet.selections) {
      const isField = selection.kind === Kind.FIELD;
      const size = isField
        ? measureField(selection, parent)
        : selection.kind === Kind.FRAGMENT_SPREAD
          ? measureFragment(selection.name.value)
          : measure(selection.selectionSet, parent);
      // the selections of a fragment stand on the level of their spread
      depth = Math.max(depth, isField ? size.depth + 1 : size.depth);
      width += size.width;
      fields += size.fields;
      rows += size.rows;
      selections += 1 + size.selections;
    }
    return { width, depth, fields, rows, selections };
  }

  return measure;
}

/** A size given by a variable counts as the largest page. */
function pageRowsOf(node: FieldNode): number {
  const sizes = (node.arguments ?? [])
    .filter(({ name }) => name.value === 'first' || name.value === 'last')
    .map(({ value }) =>
      value.kind === Kind.INT
        ? Number(value.value)
        : value.kind === Kind.NULL
          ? DEFAULT_PAGE_ROWS
          : MAX_PAGE_ROWS,
    );
  return sizes.length === 0 ? DEFAULT_PAGE_ROWS : Math.max(...sizes);
}
