/**
 * How operators may prove who they are besides with a token of app.operator_tokens: by a JWT, checked with a shared secret
 * (ADMIN_JWT_SECRET, HS256) or with the keys published at an address (ADMIN_JWKS_URL). Neither set: no JWTs.
 */

export interface AdminSettings {
  readonly jwtSecret: string | undefined;
  readonly jwksUrl: URL | undefined;
  readonly jwtIssuer: string;
  readonly jwtAudience: string;
}

/** RFC 7518, section 3.2: a key of the hash's size or larger. */
const MIN_SECRET_BYTES = 32;

/** Throws an Error that names the variable when one is not what it should be. */
export function loadAdminSettings(
  env: Readonly<Record<string, string | undefined>> = process.env,
): AdminSettings {
  const jwtSecret = env.ADMIN_JWT_SECRET || undefined;
  if (jwtSecret !== undefined && Buffer.byteLength(jwtSecret) < MIN_SECRET_BYTES) {
    throw new Error(`ADMIN_JWT_SECRET must have ${MIN_SECRET_BYTES} bytes or more`);
  }
  const jwksUrl = env.ADMIN_JWKS_URL || undefined;
  if (jwksUrl !== undefined && !/^https?:$/.test(URL.parse(jwksUrl)?.protocol ?? '')) {
    throw new Error('ADMIN_JWKS_URL must be an http or https address');
  }
  if (jwtSecret !== undefined && jwksUrl !== undefined) {
    throw new Error('set ADMIN_JWT_SECRET or ADMIN_JWKS_URL, not both');
  }
  return {
    jwtSecret,
    jwksUrl: jwksUrl === undefined ? undefined : new URL(jwksUrl),
    jwtIssuer: env.ADMIN_JWT_ISSUER || 'svc',
    jwtAudience: env.ADMIN_JWT_AUDIENCE || 'svc-admin',
  };
}
