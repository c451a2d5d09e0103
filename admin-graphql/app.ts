/**
 * The admin server: a Koa app in front of PostGraphile. Building it reads the database's schema; listening is apart.
 */
import './graphile-environment.ts';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { postgraphile } from 'postgraphile';
import { grafserv } from 'postgraphile/grafserv/koa/v3';
import type { Config } from '../core/config.ts';
import { makePool, type Pool } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import { makePreset } from './graphile.config.ts';
import { makeFunnel } from './middleware/funnel.ts';
import { makeGraphqlRequest } from './middleware/graphql-request.ts';
import { setHeaders } from './middleware/headers.ts';
import { makeHealth } from './middleware/health.ts';
import { makeOperators } from './operators.ts';
import { type AdminSettings, loadAdminSettings } from './settings.ts';

export interface AdminServerOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly databaseUrl: string;
  /** How JWTs are checked; from the environment unless given. */
  readonly settings?: AdminSettings;
}

export interface AdminServer {
  /** Port 0: any free one. Resolves once it accepts connections. */
  listen(port: number, host: string): Promise<ListeningAdminServer>;
}

export interface ListeningAdminServer {
  readonly port: number;
  /** Answers what is under way, then frees everything. */
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 8;
const STATEMENT_TIMEOUT_MS = 15_000;
/** How long requests under way may take to end when the server closes. */
const DRAIN_MS = 10_000;

const LOOK_AROUND = `
  select to_regclass('admin.accounts') is not null as "isReleased",
         coalesce(pg_has_role(current_user, to_regrole('operator'), 'set')
              and pg_has_role(current_user, to_regrole('operator_reader'), 'set'), false) as "hasRoles"`;

/** Throws an Error that says what is missing. */
export async function makeAdminServer(options: AdminServerOptions): Promise<AdminServer> {
  const { config, logger, databaseUrl } = options;
  const settings = options.settings ?? loadAdminSettings();
  const pool = await makePool({
    databaseUrl,
    applicationName: 'svc-admin',
    maxConnections: MAX_CONNECTIONS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    onError: (error) => logger.warn({ err: error }, 'a database connection broke'),
  });
  try {
    const hasRoles = await lookAround(pool);
    if (!hasRoles)
      logger.warn('this database has no operator roles: readers are refused by the server alone');
    const graphql = postgraphile(makePreset({ pool, logger, hasRoles }));
    const serv = graphql.createServ(grafserv);

    const app = new Koa({ proxy: config.proxyCount > 0 });
    app.use(makeFunnel(logger));
    app.use(setHeaders);
    app.use(makeHealth(pool));
    app.use(makeGraphqlRequest(makeOperators(pool, settings)));
    await serv.addTo(app, null, false);
    await graphql.getSchema();
    await serv.ready();

    const release = async (): Promise<void> => {
      await graphql.release();
      await pool.end();
    };
    return { listen: (port, host) => listen(app, port, host, release) };
  } catch (error) {
    await pool.end();
    throw error;
  }
}

/** Whether the roles of operators can be used. */
async function lookAround(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ isReleased: boolean; hasRoles: boolean }>(LOOK_AROUND);
  if (rows[0]?.isReleased !== true) {
    throw new Error('the database has no admin schema: run `npm run release` first');
  }
  return rows[0].hasRoles;
}

async function listen(
  app: Koa,
  port: number,
  host: string,
  release: () => Promise<void>,
): Promise<ListeningAdminServer> {
  const server = createServer(app.callback());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const timer = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
      server.closeIdleConnections();
      await closed;
      clearTimeout(timer);
      await release();
    },
  };
}
