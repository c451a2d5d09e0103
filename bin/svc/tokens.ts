/** `svc user-token` (a JWT such as the users' own identity provider would issue) and `svc admin-token issue`. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../core/config.ts';
import { makeSecret, OPERATOR_TOKEN_PREFIX } from '../../core/keys.ts';
import { withDatabase } from './database.ts';
import { Failure, type Outcome } from './failure.ts';

/** What `npm start` keeps below DATA_DIR (bin/demo.ts). */
const DEMO_FILE = 'demo.json';

const ISSUE_OPERATOR_TOKEN = `select app.issue_operator_token($1, $2, $3, 'cli') as token_id`;

export async function makeUserToken(
  config: Config,
  { sub, expiresIn }: { readonly sub: string; readonly expiresIn: number },
): Promise<Outcome> {
  const secret = await findUserTokenSecret(config);
  const { SignJWT } = await import('jose');
  const token = await new SignJWT()
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setIssuer(config.userTokenIssuer)
    .setAudience(config.userTokenAudience)
    .setSubject(sub)
    .setIssuedAt()
    .setExpirationTime(`${expiresIn}s`)
    .sign(new TextEncoder().encode(secret));
  return { json: { token }, text: token };
}

async function findUserTokenSecret(config: Config): Promise<string> {
  if (config.userTokenSecret !== undefined) return config.userTokenSecret;
  if (config.isProduction) throw new Failure('USER_TOKEN_SECRET is not set');
  const demo = process.env.DEMO_USER_TOKEN_SECRET;
  if (demo) return demo;
  const file = join(config.dataDir, DEMO_FILE);
  const kept = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as { userTokenSecret?: string },
    () => undefined,
  );
  if (kept?.userTokenSecret) return kept.userTokenSecret;
  throw new Failure(
    `no secret to sign with: USER_TOKEN_SECRET is not set and ${file} is not there (\`npm start\` writes it)`,
  );
}

export function issueOperatorToken(
  config: Config,
  { name, role }: { readonly name: string; readonly role: 'reader' | 'operator' },
): Promise<Outcome> {
  return withDatabase(config, async (pool) => {
    const { secret, hash } = makeSecret(OPERATOR_TOKEN_PREFIX);
    const { rows } = await pool.query<{ token_id: string }>(ISSUE_OPERATOR_TOKEN, [name, role, hash]);
    const tokenId = rows[0]?.token_id;
    return {
      json: { token_id: tokenId, secret },
      text: `Issued ${role} token ${tokenId}\nIts secret, shown only now: ${secret}`,
    };
  });
}
