/**
 * One worker: the queue engine with our tasks, heartbeats, rescue. Started by `index.ts` (the worker process) and by `npm start`.
 */
import { v4 as uuidv4 } from 'uuid';
import { makeAssetFiles } from '../core/assets/files.ts';
import type { AssetStore } from '../core/assets/store.ts';
import { makeCatalogueCache } from '../core/catalogue.ts';
import type { Config } from '../core/config.ts';
import { makePool } from '../core/database.ts';
import type { Logger } from '../core/logger.ts';
import { listenForNotifications } from '../core/notifications.ts';
import { startHeartbeat } from '../core/processes.ts';
import { makeSigner } from '../core/provenance/signer.ts';
import type { Bus } from '../core/relay/bus.ts';
import type { ShutdownStep } from '../core/shutdown.ts';
import { every, makeActiveRuns } from './active-runs.ts';
import { makeAnnouncements } from './announcements.ts';
import { makeRunAssets } from './assets.ts';
import { type Lane, makeEnginePool, startEngine } from './engine.ts';
import { makePaidTask } from './executor.ts';
import { makePatient } from './patient-pool.ts';
import { makeInputBudget, makePlaces } from './places.ts';
import { makeRescue } from './rescue.ts';
import { makeRoutes } from './routes.ts';
import { makeSettler } from './settle.ts';
import { makeSpeechTask } from './tasks/audio/speak.ts';
import { makeTranscriptionTask } from './tasks/audio/transcribe.ts';
import { makeChatTask } from './tasks/chat/completions.ts';
import { makeChatRooms } from './tasks/chat/room.ts';
import { makeImageTask } from './tasks/images/generate.ts';
import { CRON_ITEMS, makeMaintenanceTasks } from './tasks/maintenance/index.ts';
import { makeVacuum } from './vacuum.ts';

export interface Worker {
  /** In order: take no more jobs, let those under way finish, close. */
  readonly shutdown: readonly ShutdownStep[];
}

const POOL_SIZE = 6;
const STATEMENT_TIMEOUT_MS = 30_000;
/** A balance somebody holds locked (otherwise for the length of a commit): the others of the batch are settled without it. */
const LOCK_TIMEOUT_MS = 1000;
/** Whether the queue is due for a vacuum is looked up this often: it is after half a second of full load. */
const VACUUM_LOOK_MS = 2000;
/** How long jobs may finish after SIGTERM before they are stopped and left to another worker. */
const DRAIN_MS = 15_000;

/** Jobs that may wait here for each place: among so many accounts can be treated alike. They hold no more than their payload. */
const HEAVY_SLOTS_A_PLACE = 8;
/** Requests that need more than a look at purchased AP are announced to all lanes: the heavy ones are not to ask each time. */
const HEAVY_REFETCH_DELAY_MS = 50;

/** For requests that wait for one of so many places. */
function heavyLane(places: number): Omit<Lane, 'taskList'> {
  return {
    concurrency: places * HEAVY_SLOTS_A_PLACE,
    fetchSize: places,
    refetchDelayMs: HEAVY_REFETCH_DELAY_MS,
    cronItems: [],
  };
}

export async function startWorker(options: {
  config: Config;
  databaseUrl: string;
  bus: Bus;
  /** Not closed with the worker. */
  store: AssetStore;
  logger: Logger;
  env: Readonly<Record<string, string | undefined>>;
}): Promise<Worker> {
  const { config, databaseUrl, bus, store, logger } = options;
  const onError = (what: string) => (error: Error) => logger.warn({ err: error }, what);
  const workerId = uuidv4();
  const pool = await makePool({
    databaseUrl,
    role: 'app_worker',
    applicationName: 'svc-worker',
    maxConnections: POOL_SIZE,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    lockTimeoutMs: LOCK_TIMEOUT_MS,
    onError: onError('an idle database connection broke'),
  });
  const catalogue = await makeCatalogueCache(pool, onError('the catalogue could not be read'));
  const announcements = makeAnnouncements();
  const notifications = await listenForNotifications({
    databaseUrl,
    applicationName: 'svc-worker-listen',
    handlers: { ...announcements.handlers, svc_catalogue: () => void catalogue.refresh() },
    onGap: (isConnected) => {
      if (!isConnected) return;
      void catalogue.refresh();
      announcements.lookAgain();
    },
    onError: onError('the notification connection broke'),
  });
  const routes = makeRoutes(catalogue, options.env);
  const settler = makeSettler(pool);
  const active = await makeActiveRuns({ workerId, bus, pool, logger });

  const files = makeAssetFiles({ pool, store, retentionDays: config.assetRetentionDays, logger });
  const assets = makeRunAssets({ files, pool, logger });

  const executor = { config, workerId, pool, bus, logger, settler, active, assets };
  const chat = makeChatTask(routes, makeChatRooms(config.chatAnswerBytes));
  const inputs = makeInputBudget(config.inputBudgetBytes);
  const images = makeImageTask({
    routes,
    assets,
    signer: makeSigner(config),
    logger,
    places: makePlaces({ count: config.imageConcurrency, inputs }),
    answerBytes: config.imageAnswerBytes,
  });
  const audioPlaces = (count: number) => makePlaces({ count, inputs });
  const speech = makeSpeechTask({ routes, assets, logger, places: audioPlaces(config.speechConcurrency) });
  const transcription = makeTranscriptionTask({
    routes,
    assets,
    logger,
    places: audioPlaces(config.transcriptionConcurrency),
  });
  const light: Lane = {
    taskList: {
      [chat.name]: makePaidTask(chat, executor),
      ...makeMaintenanceTasks(pool, store, logger),
    },
    concurrency: config.workerConcurrency,
    fetchSize: config.workerConcurrency,
    cronItems: CRON_ITEMS,
  };
  const pictures: Lane = {
    ...heavyLane(config.imageConcurrency),
    taskList: { [images.name]: makePaidTask(images, executor) },
  };
  const audio: Lane = {
    ...heavyLane(config.speechConcurrency + config.transcriptionConcurrency),
    taskList: {
      [speech.name]: makePaidTask(speech, executor),
      [transcription.name]: makePaidTask(transcription, executor),
    },
  };
  let lastOutageAt = Number.NEGATIVE_INFINITY;
  const enginePool = makePatient(
    await makeEnginePool(databaseUrl, onError('an idle queue connection broke')),
    () => {
      lastOutageAt = Date.now();
    },
  );
  const engine = await startEngine({
    poolId: `pool-${workerId}`,
    enginePool,
    announcements,
    lanes: [light, pictures, audio],
    drainMs: DRAIN_MS,
    logger,
  });
  const heartbeat = await startHeartbeat({
    pool,
    process: { id: workerId, kind: 'worker', poolId: engine.poolId },
    intervalMs: config.heartbeatSeconds * 1000,
    onError: onError('the heartbeat was not written'),
  });
  const rescue = every(
    config.heartbeatSeconds * 1000,
    makeRescue({ pool, enginePool, engine, lastOutageAt: () => lastOutageAt, config, logger }),
    logger,
  );
  const vacuum = every(VACUUM_LOOK_MS, makeVacuum(enginePool), logger);

  return {
    shutdown: [
      {
        name: 'worker: finish what is under way',
        run: async () => {
          const cut = setTimeout(() => active.abortAll('stopping'), DRAIN_MS);
          await engine.stop();
          clearTimeout(cut);
        },
      },
      {
        name: 'worker: close',
        run: async () => {
          clearInterval(rescue);
          clearInterval(vacuum);
          catalogue.close();
          active.close();
          await settler.drain();
          await heartbeat.stop();
          await notifications.close();
          await routes.close();
          await enginePool.end();
          await pool.end();
        },
      },
    ],
  };
}
