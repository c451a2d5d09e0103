/**
 * The demo account of `npm start`: its key, an operator token and a secret for user tokens, given by the environment or made
 * once and kept in DATA_DIR.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import type { Config } from '../core/config.ts';
import {
  describeSecret,
  isKeyShaped,
  makeSecret,
  OPERATOR_TOKEN_PREFIX,
  prefixOf,
  SCOPES,
} from '../core/keys.ts';

export interface Demo {
  readonly apiKey: string;
  readonly adminToken: string;
  readonly userTokenSecret: string;
}

const FILE = 'demo.json';
const ACTOR = 'start';
const ACCOUNT_NAME = 'Demo';
const SUBJECT = 'demo';
/** A demo is tried in bursts. */
const RATE_PER_MINUTE = 600;

/** Throws when demo credentials are given in production. */
export async function readDemo(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Demo> {
  const given = {
    apiKey: env.DEMO_API_KEY || undefined,
    adminToken: env.DEMO_ADMIN_TOKEN || undefined,
    userTokenSecret: env.DEMO_USER_TOKEN_SECRET || undefined,
  };
  if (config.isProduction && Object.values(given).some((value) => value !== undefined)) {
    throw new Error(
      'DEMO_API_KEY, DEMO_ADMIN_TOKEN and DEMO_USER_TOKEN_SECRET are refused when NODE_ENV=production',
    );
  }
  if (given.apiKey !== undefined && !isKeyShaped(given.apiKey)) {
    throw new Error(
      'DEMO_API_KEY must be svc_live_, svc_test_ or svc_beta_ followed by 16 to 128 letters, digits, _ or -',
    );
  }
  const file = join(config.dataDir, FILE);
  const kept = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as Demo,
    () => undefined,
  );
  const fresh: Demo = kept ?? {
    apiKey: makeSecret('svc_live_').secret,
    adminToken: makeSecret(OPERATOR_TOKEN_PREFIX).secret,
    userTokenSecret: randomBytes(32).toString('base64url'),
  };
  if (kept === undefined) {
    await mkdir(config.dataDir, { recursive: true });
    await writeFile(file, `${JSON.stringify(fresh, null, 2)}\n`, { mode: 0o600 });
  }
  return {
    apiKey: given.apiKey ?? fresh.apiKey,
    adminToken: given.adminToken ?? fresh.adminToken,
    userTokenSecret: given.userTokenSecret ?? fresh.userTokenSecret,
  };
}

/** Makes the demo account, its key and its operator token where they are not there yet. */
export async function prepareDemo(client: pg.ClientBase, demo: Demo): Promise<void> {
  const key = describeSecret(demo.apiKey);
  const found = await client.query('select from app.keys where secret_hash = $1', [key.hash]);
  if (found.rowCount === 0) {
    const account = await client.query<{ id: string }>(
      `select coalesce(
        (select id from app.accounts where subject = $2),
        app.create_account($1, 'personal', $2, null, true, $3)
      ) as id`,
      [ACCOUNT_NAME, SUBJECT, ACTOR],
    );
    await client.query('select app.issue_key($1, $2, $3, $4, $5, $6, null, null, null, null, $7, null, $8)', [
      account.rows[0]?.id,
      key.hash,
      prefixOf(demo.apiKey),
      key.hint,
      'demo',
      SCOPES,
      RATE_PER_MINUTE,
      ACTOR,
    ]);
  }
  await client.query(
    `insert into app.operator_tokens (name, role, secret_hash) values ('demo', 'operator', $1) on conflict do nothing`,
    [describeSecret(demo.adminToken).hash],
  );
}
