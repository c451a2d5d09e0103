/**
 * One ingress: its connections, its caches, its HTTP server. Started by `index.ts` (the web process) and by `npm start`.
 */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { v4 as uuidv4 } from 'uuid';
import { makeAssetFiles } from '../core/assets/files.ts';
import type { AssetStore } from '../core/assets/store.ts';
import { makeAudioMeter } from '../core/audio/measure.ts';
import { makeCatalogueCache } from '../core/catalogue.ts';
import type { Config } from '../core/config.ts';
import { makePool } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import { listenForNotifications } from '../core/notifications.ts';
import { startHeartbeat } from '../core/processes.ts';
import { makeInspector } from '../core/provenance/inspector.ts';
import type { Bus } from '../core/relay/bus.ts';
import type { ShutdownStep } from '../core/shutdown.ts';
import { TransientMap } from '../core/transient-map.ts';
import { makeApp } from './app.ts';
import { makeBodyBudget } from './body-budget.ts';
import { answerClientError, answerExpectation, isRefusedForHost } from './client-errors.ts';
import { makeCounters } from './counters.ts';
import { makeKeyCache } from './key-cache.ts';
import { makeLoad } from './load.ts';
import { makeAddressCap } from './middleware/ip-daily-cap.ts';
import { makeRateLimiter } from './middleware/rate-limit.ts';
import { makePageViewCounter } from './page-views.ts';
import { makeRelay, type Relay } from './relay.ts';
import { makeStorageHealth } from './storage-health.ts';
import { makeSubmit } from './submit.ts';

export interface Ingress {
  readonly port: number;
  /** In order: stop taking requests, answer those that wait, close. */
  readonly shutdown: readonly ShutdownStep[];
}

const POOL_SIZE = 10;
/** One connection for each lane of submit, which lists and key look-ups cannot take away. */
const SUBMIT_POOL_SIZE = 5;
/** For what else locks balances: cancelling, and paid operations without a provider. */
const BALANCES_POOL_SIZE = 4;
const STATEMENT_TIMEOUT_MS = 15_000;
/** A balance that somebody has locked: its account alone is to wait. */
const LOCK_TIMEOUT_MS = 2_000;
/** Of the room for large bodies: one picture at a time of any size, whoever sends it. */
const KEYLESS_BODY_SHARE = 1 / 3;
/** Requests that are still open after this are cut: their results wait in the database. */
const DRAIN_MS = 20_000;
const IDLE_CLOSE_MS = 250;

export async function startIngress(options: {
  config: Config;
  databaseUrl: string;
  bus: Bus;
  /** Not closed with the ingress. */
  store: AssetStore;
  logger: Logger;
}): Promise<Ingress> {
  const { config, databaseUrl, bus, store, logger } = options;
  const onError = (what: string) => (error: Error) => logger.warn({ err: error }, what);
  const ingressId = uuidv4();
  const poolOptions = {
    databaseUrl,
    role: 'app_ingress',
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    onError: onError('an idle database connection broke'),
  } as const;
  const pool = await makePool({
    ...poolOptions,
    applicationName: 'svc-ingress',
    maxConnections: POOL_SIZE,
  });
  const submitPool = await makePool({
    ...poolOptions,
    applicationName: 'svc-ingress-submit',
    maxConnections: SUBMIT_POOL_SIZE,
    lockTimeoutMs: LOCK_TIMEOUT_MS,
  });
  const balancesPool = await makePool({
    ...poolOptions,
    applicationName: 'svc-ingress-balances',
    maxConnections: BALANCES_POOL_SIZE,
    lockTimeoutMs: LOCK_TIMEOUT_MS,
  });
  const catalogue = await makeCatalogueCache(pool, onError('the catalogue could not be read'));
  let isFresh = false;
  const keys = makeKeyCache({
    pool,
    isFresh: () => isFresh,
    onError: onError('times of last use were not written'),
  });
  const notifications = await listenForNotifications({
    databaseUrl,
    applicationName: 'svc-ingress-listen',
    handlers: {
      svc_accounts: (accountId) => keys.forgetAccount(accountId),
      svc_catalogue: () => void catalogue.refresh(),
    },
    onGap: (isConnected) => {
      isFresh = isConnected;
      keys.forgetAll();
      if (isConnected) void catalogue.refresh();
    },
    onError: onError('the notification connection broke'),
  });
  const load = makeLoad({
    pool,
    maxQueueDepth: config.maxQueueDepth,
    deadAfterSeconds: config.deadAfterSeconds,
  });
  await load.refresh();
  const relay = await makeRelay({ ingressId, bus, pool, balancesPool, logger });
  const submit = makeSubmit(submitPool, config.initialGrantAp);
  const counters = makeCounters(
    config.redisUrl,
    onError('the rate limiter counts by itself: Redis does not answer'),
  );
  const inspector = makeInspector(config);
  const audioMeter = makeAudioMeter();
  const now = (): Date => new Date();
  const pageViews = makePageViewCounter({ pool, now, onError: onError('page views were not written') });
  const heartbeat = await startHeartbeat({
    pool,
    process: { id: ingressId, kind: 'ingress', poolId: null },
    intervalMs: config.heartbeatSeconds * 1000,
    onError: onError('the heartbeat was not written'),
  });
  const keylessBytes = Math.ceil(config.bodyBudgetBytes * KEYLESS_BODY_SHARE);
  const app = makeApp({
    config,
    logger,
    pool,
    balancesPool,
    catalogue,
    keys,
    rateLimiter: makeRateLimiter(counters),
    addressCap: makeAddressCap({ counters, dailyCap: config.ipDailyCap, now }),
    submit,
    relay,
    load,
    inspector,
    audioMeter,
    files: makeAssetFiles({ pool, store, retentionDays: config.assetRetentionDays, logger }),
    bodyBudget: makeBodyBudget({
      keyedBytes: config.bodyBudgetBytes - keylessBytes,
      keylessBytes,
    }),
    isStorageUp: makeStorageHealth(store, logger),
    pageViews,
    now,
  });
  const handle = app.callback();
  const open = new TransientMap<ServerResponse>();
  let served = 0;
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    if (isRefusedForHost(request, response)) return;
    if (!server.listening) response.setHeader('Connection', 'close');
    served += 1;
    const name = `response ${served}`;
    open.set(name, response);
    response.once('close', () => open.delete(name));
    void handle(request, response);
  });
  server.on('clientError', answerClientError);
  server.on('checkExpectation', answerExpectation);
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.requestTimeout = 120_000; // a body must arrive within it
  server.headersTimeout = 15_000;
  server.keepAliveTimeout = 75_000; // longer than the router in front keeps its connections
  await listen(server, config.port, config.host);

  return {
    port: (server.address() as AddressInfo).port,
    shutdown: [
      {
        name: 'ingress: stop listening and answer what waits',
        run: () => closeServer(server, sockets, open, relay),
      },
      {
        name: 'ingress: close',
        run: async () => {
          relay.close();
          load.close();
          catalogue.close();
          await submit.drain();
          await keys.close();
          await pageViews.close();
          counters.close();
          await inspector.close();
          await audioMeter.close();
          await heartbeat.stop();
          await notifications.close();
          await submitPool.end();
          await balancesPool.end();
          await pool.end();
        },
      },
    ],
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Callers that keep their connection are told to come back on another with their next request: it would never end. */
function closeServer(
  server: Server,
  sockets: ReadonlySet<Socket>,
  open: TransientMap<ServerResponse>,
  relay: Relay,
): Promise<void> {
  const closeIdle = (): void => {
    server.closeIdleConnections();
    // one that was opened in advance and never used is not idle to Node until its first request
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
  };
  return new Promise((resolve) => {
    const cut = setTimeout(() => {
      relay.letGo();
      server.closeAllConnections();
    }, DRAIN_MS);
    for (const response of open.values())
      if (!response.headersSent) response.setHeader('Connection', 'close');
    // a stream that has begun cannot say it any more: its connection goes once it is idle
    const idle = setInterval(closeIdle, IDLE_CLOSE_MS);
    server.close(() => {
      clearTimeout(cut);
      clearInterval(idle);
      resolve();
    });
    closeIdle();
  });
}
