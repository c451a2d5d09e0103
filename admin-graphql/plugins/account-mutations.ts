/**
 * The mutations of accounts and keys that need more than a function of the database: issuing a key, whose secret is made here
 * so that the database never has it, and the two updates, where a field left out stays as it is and null clears it.
 */
import { sideEffectWithPgClient } from 'postgraphile/@dataplan/pg';
import { type FieldArgs, get, type Step } from 'postgraphile/grafast';
import { extendSchema, gql } from 'postgraphile/utils';
import { type KeyPrefix, makeSecret } from '../../core/keys.ts';

interface IssueKeyInput {
  readonly account: string;
  readonly prefix: KeyPrefix;
  readonly name: string;
  readonly scopes?: readonly string[] | null;
  readonly allowedModels?: readonly string[] | null;
  readonly capPerRequestAp?: string | null;
  readonly capDailyAp?: string | null;
  readonly capMonthlyAp?: string | null;
  readonly ratePerMinute?: number | null;
  readonly expiresAt?: string | null;
}

interface UpdateAccountInput {
  readonly account: string;
  readonly patch: Readonly<Record<string, unknown>>;
}

interface UpdateKeyInput {
  readonly key: string;
  readonly patch: Readonly<Record<string, unknown>>;
}

const ISSUE_KEY = 'select admin.issue_key($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) as id';
const UPDATE_ACCOUNT = 'select admin.update_account($1, $2) as id';
const UPDATE_KEY = 'select admin.update_key($1, $2) as id';

const TYPES = gql`
  """
  How a secret begins. svc_test_ keys always use the sandbox; svc_beta_ keys end with the beta programme.
  """
  enum KeyPrefix {
    svc_live_
    svc_test_
    svc_beta_
  }

  """
  An area of the service that a key may call.
  """
  enum Scope {
    llm
    tts
    images
    x
    cert
  }

  """
  All input for the \`issueKey\` mutation.
  """
  input IssueKeyInput {
    "The account that pays for its calls."
    account: UUID!
    prefix: KeyPrefix! = svc_live_
    "What its owner calls it."
    name: String! = ""
    "Every area unless given."
    scopes: [Scope!]
    "The only models it may use; every model of the account unless given."
    allowedModels: [String!]
    "The most AP one request may hold."
    capPerRequestAp: BigInt
    "The most AP it may use in a day (UTC)."
    capDailyAp: BigInt
    "The most AP it may use in a month (UTC)."
    capMonthlyAp: BigInt
    "Requests it may send in a minute; 60 unless given."
    ratePerMinute: Int
    "When it stops working."
    expiresAt: Datetime
  }

  """
  The output of our \`issueKey\` mutation.
  """
  type IssueKeyPayload {
    "The key's secret. It is shown here and never again."
    secret: String!
    key: Key
  }

  """
  All input for the \`updateKey\` mutation.
  """
  input UpdateKeyInput {
    key: UUID!
    patch: KeyChanges!
  }

  """
  What to change of a key. A field left out stays as it is; null takes a cap, the list of models or the expiry away.
  """
  input KeyChanges {
    name: String
    scopes: [Scope!]
    allowedModels: [String!]
    capPerRequestAp: BigInt
    capDailyAp: BigInt
    capMonthlyAp: BigInt
    ratePerMinute: Int
    expiresAt: Datetime
  }

  """
  The output of our \`updateKey\` mutation.
  """
  type UpdateKeyPayload {
    key: Key
  }

  """
  All input for the \`updateAccount\` mutation.
  """
  input UpdateAccountInput {
    account: UUID!
    patch: AccountChanges!
  }

  """
  What to change of an account. A field left out stays as it is; null takes the subject, the language or the list of models away.
  """
  input AccountChanges {
    name: String
    "The user (a user token's sub) it belongs to."
    subject: String
    "The language of its error messages; null: as the caller asks."
    language: Language
    "Whether a payment card is on file."
    cardOnFile: Boolean
    "The only models it may use; null: every model."
    allowedModels: [String!]
  }

  """
  The output of our \`updateAccount\` mutation.
  """
  type UpdateAccountPayload {
    account: Account
  }

  extend type Mutation {
    "Issues an API key. Its secret is in the answer and nowhere else."
    issueKey(input: IssueKeyInput!): IssueKeyPayload
    "Changes a key's name, scopes, models, caps, rate or expiry, at once."
    updateKey(input: UpdateKeyInput!): UpdateKeyPayload
    "Changes an account's name, subject, language, card or models, at once."
    updateAccount(input: UpdateAccountInput!): UpdateAccountPayload
  }
`;

export const accountMutationsPlugin = extendSchema((build) => {
  const { pgExecutors, pgResources } = build.input.pgRegistry;
  const executor = pgExecutors.main;
  const accounts = pgResources.accounts;
  const keys = pgResources.keys;
  if (executor === undefined || accounts === undefined || keys === undefined) {
    throw new Error('the views admin.accounts and admin.keys are missing');
  }

  return {
    typeDefs: TYPES,
    objects: {
      Mutation: {
        plans: {
          issueKey(_$root: Step, { $input }: FieldArgs) {
            return sideEffectWithPgClient(executor, $input, async (client, input: IssueKeyInput) => {
              const { secret, hash, hint } = makeSecret(input.prefix);
              const { rows } = await client.query<{ id: string }>({
                text: ISSUE_KEY,
                values: [
                  input.account,
                  hash,
                  input.prefix,
                  hint,
                  input.name,
                  input.scopes ?? null,
                  input.allowedModels ?? null,
                  input.capPerRequestAp ?? null,
                  input.capDailyAp ?? null,
                  input.capMonthlyAp ?? null,
                  input.ratePerMinute ?? null,
                  input.expiresAt ?? null,
                ],
              });
              return { id: rows[0]?.id, secret };
            });
          },
          updateKey(_$root: Step, { $input }: FieldArgs) {
            return sideEffectWithPgClient(executor, $input, async (client, input: UpdateKeyInput) => {
              const { rows } = await client.query<{ id: string }>({
                text: UPDATE_KEY,
                values: [input.key, JSON.stringify(columnsOf(input.patch))],
              });
              return { id: rows[0]?.id };
            });
          },
          updateAccount(_$root: Step, { $input }: FieldArgs) {
            return sideEffectWithPgClient(executor, $input, async (client, input: UpdateAccountInput) => {
              const { rows } = await client.query<{ id: string }>({
                text: UPDATE_ACCOUNT,
                values: [input.account, JSON.stringify(columnsOf(input.patch))],
              });
              return { id: rows[0]?.id };
            });
          },
        },
      },
      IssueKeyPayload: { plans: { key: ($payload: Step) => keys.get({ id: get($payload, 'id') }) } },
      UpdateKeyPayload: { plans: { key: ($payload: Step) => keys.get({ id: get($payload, 'id') }) } },
      UpdateAccountPayload: {
        plans: { account: ($payload: Step) => accounts.get({ id: get($payload, 'id') }) },
      },
    },
  };
}, 'AdminAccountMutationsPlugin');

/** `capDailyAp` is the column cap_daily_ap. */
function columnsOf(patch: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(patch).map(([field, value]) => [
      field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  );
}
