/** What the tests of imports and exports share: small catalogues, and looks into the database. */
import type { PoolClient } from 'pg';
import { CatalogueFileError } from '../../../core/catalogue-file/error.ts';
import { type CatalogueImport, importCatalogue } from '../../../core/catalogue-file/index.ts';
import { type Queryable, selectOne, selectRows } from '../../helpers/database.ts';

export const DAY_MS = 86_400_000;
export const FULL = `
providers:
  - {name: sandbox, kind: sandbox}
  - {name: up, kind: openai, base_url: "https://up.example/v1", credential_env: UP_KEY}
models:
  - id: chat-large
    type: chat
    max_tokens: 16384
    context_tokens: 128000
    routes:
      - {provider: up, upstream_model: "gpt: large", weight: 3}
      - {provider: sandbox, upstream_model: sandbox-chat, priority: 1}
    pricing: {ap_in_per_1k: 25, ap_out_per_1k: 100}
  - id: speech-main
    type: speech
    recommended: true
    routes: [{provider: up, upstream_model: tts}]
    pricing: {ap: 200}
  - id: image-main
    type: image
    routes: [{provider: up, upstream_model: gpt-image}]
    pricing:
      - {size: 1024x1024, quality: low, ap: 120}
      - {size: 1024x1024, quality: high, ap: 1900}
voices:
  - {slug: narrator, name: Narrator, tagline: "calm, slow", provider: up, upstream_voice: alloy, model: speech-main}
`;

export const speech = (pricing: string): string =>
  [
    'providers: [{name: sandbox, kind: sandbox}]',
    'models:',
    '  - id: speech-main',
    '    type: speech',
    '    routes: [{provider: sandbox, upstream_model: u}]',
    `    pricing: ${pricing}`,
    '',
  ].join('\n');
export const load = (db: PoolClient, text: string, prune = false): Promise<CatalogueImport> =>
  importCatalogue(db, text, 'c.yaml', 'tester', { prune });
export const pricesIn = (db: Queryable): Promise<{ ap: number; days: number }[]> =>
  selectRows(
    db,
    `select ap, extract(epoch from effective_at - now())::float8 / 86400 as days from app.prices
       where model_id = 'speech-main' order by effective_at`,
  );
/** What was written so many days before now. */
export const letDaysPass = async (db: PoolClient, days: number): Promise<void> => {
  await db.query('set local session_replication_role = replica'); // no guards: prices never change otherwise
  await db.query(
    `update app.prices set announced_at = announced_at - $1 * interval '1 day',
       effective_at = effective_at - $1 * interval '1 day'`,
    [days],
  );
  await db.query('set local session_replication_role = origin');
};
export const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();
export const contentOf = async (db: Queryable): Promise<unknown> =>
  (await selectOne<{ content: unknown }>(db, 'select app.catalogue_document() as content')).content;
export const count = async (db: Queryable, table: string): Promise<number> =>
  (await selectOne<{ count: number }>(db, `select count(*) from app.${table}`)).count;

/** What a refused import says, line by line; nothing where it was not refused. */
export async function refusalOf(importing: Promise<unknown>): Promise<readonly string[]> {
  return await importing.then(
    () => [],
    (error: unknown) => {
      if (error instanceof CatalogueFileError) return error.problems;
      throw error;
    },
  );
}
