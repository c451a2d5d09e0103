/**
 * Who asks: an operator's token (its hash is looked up for every request, so that revoking works at once) or a JWT.
 */
import { createRemoteJWKSet, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type { Pool } from '../core/database.ts';
import { hashSecret, OPERATOR_TOKEN_PREFIX } from '../core/keys.ts';
import { Refusal } from './refusal.ts';
import type { AdminSettings } from './settings.ts';

export type OperatorRole = 'reader' | 'operator';

export interface Operator {
  readonly role: OperatorRole;
  /** What the audit log calls it: name and id. */
  readonly actor: string;
}

export interface Operators {
  /** From the value of an Authorization header. Throws a Refusal. */
  authenticate(authorization: string | undefined): Promise<Operator>;
}

const FIND_TOKEN = `select id, name, role, revoked_at from app.operator_tokens where secret_hash = $1`;

/** Signatures by asymmetric keys only: an address that publishes keys must not be taken for a shared secret. */
const JWKS_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'];
const CLOCK_TOLERANCE_SECONDS = 5;
const JWKS_TIMEOUT_MS = 5000;

interface TokenRow {
  readonly id: string;
  readonly name: string;
  readonly role: OperatorRole;
  readonly revoked_at: Date | null;
}

export function makeOperators(pool: Pool, settings: AdminSettings): Operators {
  const verifyJwt = makeJwtVerifier(settings);

  async function byToken(secret: string): Promise<Operator> {
    const { rows } = await pool.query<TokenRow>(FIND_TOKEN, [hashSecret(secret)]);
    const token = rows[0];
    if (token === undefined) throw invalid();
    if (token.revoked_at !== null) {
      throw new Refusal('This token is revoked.', { code: 'operator_token_revoked', statusCode: 401 });
    }
    return { role: token.role, actor: `${token.name} (${token.id})` };
  }

  async function byJwt(jwt: string): Promise<Operator> {
    if (verifyJwt === undefined) throw invalid();
    const claims = await verifyJwt(jwt);
    const { sub, name, role } = claims;
    if (sub === undefined || sub === '' || (role !== 'reader' && role !== 'operator')) throw invalid();
    return { role, actor: `${typeof name === 'string' && name !== '' ? name : sub} (jwt ${sub})` };
  }

  return {
    async authenticate(authorization) {
      const secret = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
      if (secret === undefined) {
        throw new Refusal(`Send an operator token: Authorization: Bearer ${OPERATOR_TOKEN_PREFIX}…`, {
          code: 'not_authenticated',
          statusCode: 401,
        });
      }
      return verifyJwt !== undefined && JWT_SHAPE.test(secret) ? await byJwt(secret) : await byToken(secret);
    },
  };
}

/** Three base64url parts; what an operator token given by DEMO_ADMIN_TOKEN looks like is anybody's guess. */
const JWT_SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/;

function makeJwtVerifier(settings: AdminSettings): ((jwt: string) => Promise<JWTPayload>) | undefined {
  const { jwtSecret, jwksUrl } = settings;
  if (jwtSecret === undefined && jwksUrl === undefined) return undefined;
  const key: Uint8Array | JWTVerifyGetKey =
    jwksUrl === undefined
      ? new TextEncoder().encode(jwtSecret)
      : createRemoteJWKSet(jwksUrl, { timeoutDuration: JWKS_TIMEOUT_MS });
  const options = {
    issuer: settings.jwtIssuer,
    audience: settings.jwtAudience,
    algorithms: jwksUrl === undefined ? ['HS256'] : JWKS_ALGORITHMS,
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
    requiredClaims: ['exp', 'sub'],
  };
  return async (jwt) => {
    try {
      const verified =
        typeof key === 'function' ? await jwtVerify(jwt, key, options) : await jwtVerify(jwt, key, options);
      return verified.payload;
    } catch (error) {
      if (isUnreachable(error)) {
        throw new Refusal('The keys that JWTs are signed with cannot be fetched; try again.', {
          code: 'unavailable',
          statusCode: 503,
          cause: error,
        });
      }
      throw invalid(error);
    }
  };
}

/** jose's codes for a slow address and for a wrong answer, and whatever fetch throws, which has none of jose's codes. */
function isUnreachable(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string' || !code.startsWith('ERR_J')) return true;
  return code === 'ERR_JWKS_TIMEOUT' || code === 'ERR_JOSE_GENERIC';
}

function invalid(cause?: unknown): Refusal {
  return new Refusal('This token is not valid here.', {
    code: 'invalid_operator_token',
    statusCode: 401,
    cause,
  });
}
