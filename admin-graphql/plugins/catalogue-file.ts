/**
 * The catalogue as a YAML file (core/catalogue-file): imported whole or not at all, exported as it stands.
 */
import { loadOneWithPgClient, type PgClient, sideEffectWithPgClient } from 'postgraphile/@dataplan/pg';
import { constant, context, type FieldArgs, get, object, type Step } from 'postgraphile/grafast';
import { extendSchema, gql } from 'postgraphile/utils';
import { CatalogueFileError } from '../../core/catalogue-file/error.ts';
import { type CatalogueExport, exportCatalogue, importCatalogue } from '../../core/catalogue-file/index.ts';
import { Refusal } from '../refusal.ts';

interface ImportInput {
  readonly yaml: string;
  readonly fileName: string;
  readonly prune: boolean;
}

/**
 * Reading and writing the catalogue takes rights that no operator's role has: for the rest of its transaction the connection
 * is the database's owner again. The mutation has been refused to readers by then (plugins/readers.ts), and a query's
 * transaction is read-only.
 */
const AS_OWNER = { text: 'set local role none' };

const TYPES = gql`
  """
  All input for the \`importCatalogue\` mutation.
  """
  input ImportCatalogueInput {
    "The file's text."
    yaml: String!
    "What to call it where problems are named."
    fileName: String! = "catalogue.yaml"
    "Retire the models that the file does not name."
    prune: Boolean! = false
  }

  """
  A price that an import changed.
  """
  type CataloguePriceChange {
    "The model's id."
    model: String!
    "Empty where the model's prices have none."
    size: String!
    "Empty where the model's prices have none."
    quality: String!
    "The amounts by their names in the file."
    before: JSON!
    "The amounts as they will be."
    after: JSON!
    "From when on."
    effectiveAt: Datetime!
  }

  """
  The output of our \`importCatalogue\` mutation.
  """
  type ImportCataloguePayload {
    "How many providers the file has."
    providers: Int!
    "How many models the file has."
    models: Int!
    "How many voices the file has."
    voices: Int!
    "Models that were taken off the offer."
    retired: [String!]!
    "Prices that changed."
    priceChanges: [CataloguePriceChange!]!
  }

  """
  The catalogue as a file.
  """
  type CatalogueFile {
    "Importing it again changes nothing."
    yaml: String!
    "How many providers it has."
    providers: Int!
    "How many models it has."
    models: Int!
    "How many voices it has."
    voices: Int!
  }

  extend type Mutation {
    "Imports a catalogue: all of it, or nothing and a list of its problems."
    importCatalogue(input: ImportCatalogueInput!): ImportCataloguePayload
  }

  extend type Query {
    "The catalogue as a YAML file: providers, models on offer, prices in force and announced, voices."
    exportCatalogue: CatalogueFile
  }
`;

export const catalogueFilePlugin = extendSchema((build) => {
  const executor = build.input.pgRegistry.pgExecutors.main;
  if (executor === undefined) throw new Error('there is no database');

  return {
    typeDefs: TYPES,
    objects: {
      Mutation: {
        plans: {
          importCatalogue(_$root: Step, fieldArgs: FieldArgs) {
            const $actor = get(context().get('operator'), 'actor');
            const $data = object({ input: fieldArgs.getRaw('input'), actor: $actor });
            return sideEffectWithPgClient(executor, $data, async (client, data) => {
              const { input, actor } = data as { input: ImportInput; actor: string };
              const { yaml, fileName, prune } = input;
              await client.query(AS_OWNER);
              return await importCatalogue(client, yaml, fileName, actor, { prune }).catch(refuseProblems);
            });
          },
        },
      },
      Query: {
        plans: {
          exportCatalogue() {
            return loadOneWithPgClient(executor, constant(null), readCatalogueFile);
          },
        },
      },
    },
  };
}, 'AdminCatalogueFilePlugin');

async function readCatalogueFile(
  client: PgClient,
  lookups: readonly null[],
): Promise<readonly CatalogueExport[]> {
  await client.query(AS_OWNER);
  const file = await exportCatalogue(client);
  return lookups.map(() => file);
}

function refuseProblems(error: unknown): never {
  if (!(error instanceof CatalogueFileError)) throw error;
  throw new Refusal(error.message, {
    code: 'invalid_parameter',
    cause: error,
    details: { param: 'yaml', problems: error.problems },
  });
}
