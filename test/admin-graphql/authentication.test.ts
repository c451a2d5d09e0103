import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { after, before, describe, it } from 'mocha';
import { makeOperators } from '../../admin-graphql/operators.ts';
import type { Refusal } from '../../admin-graphql/refusal.ts';
import { loadAdminSettings } from '../../admin-graphql/settings.ts';
import type { Pool } from '../../core/database.ts';
import { hashSecret } from '../../core/keys.ts';
import { selectOne, selectRows, withRollback } from '../helpers/database.ts';
import { JWT_SETTINGS, makeToken, withAdmin } from './admin-client.ts';

const LOOK = '{ accounts { nodes { id } } }';
const OPEN = 'mutation { createAccount(input: {name: "New"}) { account { id } } }';

async function makeJwt(
  claims: Record<string, unknown>,
  changes: { secret?: string; issuer?: string; audience?: string; expiresIn?: string } = {},
): Promise<string> {
  return await new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer(changes.issuer ?? JWT_SETTINGS.jwtIssuer)
    .setAudience(changes.audience ?? JWT_SETTINGS.jwtAudience)
    .setExpirationTime(changes.expiresIn ?? '1 minute')
    .sign(new TextEncoder().encode(changes.secret ?? JWT_SETTINGS.jwtSecret));
}

describe('admin: who may ask', () => {
  const admin = withAdmin();

  async function countAccounts(): Promise<number> {
    return (await selectOne<{ n: number }>(admin.database.pool, 'select count(*) as n from app.accounts')).n;
  }

  it('answers 401 in JSON without a token', async () => {
    const { status, errors } = await admin.ask(LOOK, {}, null);
    expect(status).to.equal(401);
    expect(errors[0]?.extensions.code).to.equal('not_authenticated');
  });

  for (const secret of ['svc_op_unknown', 'svc_live_of-another-kind', 'a.b.c', 'x']) {
    it(`refuses the token ${secret}`, async () => {
      const { status, errors } = await admin.ask(LOOK, {}, secret);
      expect(status).to.equal(401);
      expect(errors[0]?.extensions.code).to.equal('invalid_operator_token');
    });
  }

  it('knows an operator by whatever token was stored for it, as DEMO_ADMIN_TOKEN may be anything', async () => {
    await admin.database.pool.query(
      `insert into app.operator_tokens (name, role, secret_hash) values ('demo', 'operator', $1)`,
      [hashSecret('my-admin-token')],
    );
    expect((await admin.ask(LOOK, {}, 'my-admin-token')).status).to.equal(200);
  });

  it('refuses a token from the moment an operator revokes it', async () => {
    const { id, secret } = await makeToken(admin.database.pool, 'operator');
    expect((await admin.ask(LOOK, {}, secret)).status).to.equal(200);
    await admin.must(
      `mutation { revokeOperatorToken(input: {token: "${id}"}) { operatorToken { revokedAt } } }`,
    );
    const { status, errors } = await admin.ask(LOOK, {}, secret);
    expect(status).to.equal(401);
    expect(errors[0]?.extensions.code).to.equal('operator_token_revoked');
  });

  it('lets a reader read and refuses it every mutation', async () => {
    const { reader } = admin.tokens;
    expect((await admin.ask(LOOK, {}, reader.secret)).errors).to.deep.equal([]);
    const before = await countAccounts();
    const { data, errors } = await admin.ask(OPEN, {}, reader.secret);
    expect(data).to.equal(null);
    expect(errors[0]?.extensions.code).to.equal('forbidden');
    expect(await countAccounts()).to.equal(before);
  });

  it('gives operator_reader no right on the mutations nor on any table', async () => {
    for (const statement of [
      "select admin.create_account('x')",
      "select admin.grant_ap(gen_random_uuid(), 1, 'grant', 'x')",
      'select * from app.accounts',
      'select * from app.operator_tokens',
      'select * from graphile_worker.jobs',
    ]) {
      const code = await withRollback(admin.database.pool, async (client) => {
        await client.query('set local role operator_reader');
        return await client.query(statement).then(
          () => 'done',
          (error: { code: string }) => error.code,
        );
      });
      expect(code, statement).to.equal('42501');
    }
  });

  it('gives operator no right on any table either, and no act without a name', async () => {
    await withRollback(admin.database.pool, async (client) => {
      await client.query('set local role operator');
      const refused = await client.query("select admin.create_account('x')").catch((error: Error) => error);
      expect(refused).to.be.an('error').with.property('message', 'no operator is named for this transaction');
    });
    const rights = await selectRows(
      admin.database.pool,
      `select table_schema, table_name, privilege_type from information_schema.table_privileges
         where grantee in ('operator', 'operator_reader') and (table_schema <> 'admin' or privilege_type <> 'SELECT')`,
    );
    expect(rights).to.deep.equal([]);
  });

  it('pins the search path of every function that runs as its owner', async () => {
    const loose = await selectRows(
      admin.database.pool,
      `select p.proname from pg_proc p where p.pronamespace in ('admin'::regnamespace, 'app'::regnamespace)
         and p.prosecdef and not coalesce(array_to_string(p.proconfig, ',') like '%search_path=pg_catalog, pg_temp%', false)`,
    );
    expect(loose).to.deep.equal([]);
  });

  describe('with a JWT', () => {
    it('takes the role from it, and names its subject in the audit log', async () => {
      const jwt = await makeJwt({ sub: 'user-1', name: 'Grace', role: 'operator' });
      expect((await admin.ask(OPEN, {}, jwt)).errors).to.deep.equal([]);
      const { actor } = await selectOne<{ actor: string }>(
        admin.database.pool,
        'select actor from app.audit_log order by id desc limit 1',
      );
      expect(actor).to.equal('Grace (jwt user-1)');
    });

    it('refuses a reader a mutation', async () => {
      const { errors } = await admin.ask(OPEN, {}, await makeJwt({ sub: 'user-2', role: 'reader' }));
      expect(errors[0]?.extensions.code).to.equal('forbidden');
    });

    const claims = { sub: 'user-3', role: 'operator' };
    const refused: Record<string, () => Promise<string>> = {
      'another secret': () => makeJwt(claims, { secret: 'another secret of thirty-two bytes or so' }),
      'another issuer': () => makeJwt(claims, { issuer: 'somebody else' }),
      'another audience': () => makeJwt(claims, { audience: 'svc' }),
      'an expiry that has passed': () => makeJwt(claims, { expiresIn: '-1 minute' }),
      'no role': () => makeJwt({ sub: 'user-3' }),
      'an unknown role': () => makeJwt({ ...claims, role: 'owner' }),
      'no subject': () => makeJwt({ role: 'operator' }),
      'no signature': async () => {
        const [, payload] = (await makeJwt(claims)).split('.');
        return `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`;
      },
    };
    for (const [what, make] of Object.entries(refused)) {
      it(`refuses one with ${what}`, async () => {
        const { status, errors } = await admin.ask(LOOK, {}, await make());
        expect(status).to.equal(401);
        expect(errors[0]?.extensions.code).to.equal('invalid_operator_token');
      });
    }
  });
});

describe('admin: JWTs checked with published keys', () => {
  let server: Server;
  let jwksUrl: URL;
  let sign: (algorithm: 'ES256' | 'HS256') => Promise<string>;

  before(async () => {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
    const jwk = await exportJWK(publicKey);
    server = createServer((_request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ keys: [{ ...jwk, kid: 'k', alg: 'ES256' }] }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    jwksUrl = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`);
    sign = async (algorithm) =>
      await new SignJWT({ sub: 'user-9', role: 'reader' })
        .setProtectedHeader({ alg: algorithm, kid: 'k' })
        .setIssuer(JWT_SETTINGS.jwtIssuer)
        .setAudience(JWT_SETTINGS.jwtAudience)
        .setExpirationTime('1 minute')
        // the old trick: what is published, taken for a shared secret
        .sign(algorithm === 'ES256' ? privateKey : new TextEncoder().encode(JSON.stringify(jwk)));
  });
  after(() => server.close());

  const operators = () => makeOperators({} as Pool, { ...JWT_SETTINGS, jwtSecret: undefined, jwksUrl });

  async function refusalCode(jwt: string): Promise<unknown> {
    return await operators()
      .authenticate(`Bearer ${jwt}`)
      .catch((error: Refusal) => error.extensions.code);
  }

  it('takes one signed with such a key', async () => {
    expect(await operators().authenticate(`Bearer ${await sign('ES256')}`)).to.deep.equal({
      role: 'reader',
      actor: 'user-9 (jwt user-9)',
    });
  });

  it('refuses one signed with the public key as a shared secret', async () => {
    expect(await refusalCode(await sign('HS256'))).to.equal('invalid_operator_token');
  });

  it('says that it cannot tell while the keys cannot be fetched', async () => {
    const jwt = await sign('ES256');
    jwksUrl = new URL('http://127.0.0.1:1/jwks.json');
    expect(await refusalCode(jwt)).to.equal('unavailable');
  });
});

describe('admin: settings', () => {
  it('takes no JWTs unless told how to check them', () => {
    expect(loadAdminSettings({})).to.include({ jwtSecret: undefined, jwksUrl: undefined });
  });

  for (const [env, message] of [
    [{ ADMIN_JWT_SECRET: 'short' }, 'ADMIN_JWT_SECRET'],
    [{ ADMIN_JWKS_URL: 'ftp://keys' }, 'ADMIN_JWKS_URL'],
    [{ ADMIN_JWT_SECRET: 'x'.repeat(32), ADMIN_JWKS_URL: 'https://keys' }, 'not both'],
  ] as const) {
    it(`refuses ${Object.keys(env).join(' with ')}: ${message}`, () => {
      expect(() => loadAdminSettings(env)).to.throw(message);
    });
  }
});
