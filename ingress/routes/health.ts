/**
 * `/health` (200 only when a paid request would succeed) and `/health/stats` (rates, latencies, queue depth).
 */
import type { ModelType } from '../../core/catalogue.ts';
import type { Handler } from '../context.ts';
import { readStatistics } from '../data/statistics.ts';
import { answerPublicRead } from '../public-read.ts';
import type { Services } from '../services.ts';

/** Older figures than this mean that the database does not answer. */
const STALE_MS = 5000;
const STATISTICS_TTL_MS = 10_000;

/** Whose requests leave or read files: they fail while the asset store is down. */
const WITH_FILES: readonly ModelType[] = ['speech', 'transcription', 'image', 'video'];

type PartState = 'ok' | 'degraded' | 'down' | 'not_offered';

/** GET /health */
export function getHealth(services: Services): Handler {
  return async (ctx) => {
    const { load, config, relay } = services;
    const isDatabaseUp = load.readAt !== undefined && Date.now() - load.readAt.getTime() < STALE_MS;
    const areWorkersUp = isDatabaseUp && load.workers > 0;
    const hasRoom = load.depth < config.maxQueueDepth;
    const isStorageUp = await services.isStorageUp();
    const offered = new Set([...services.catalogue.current().models.values()].map(({ type }) => type));
    const needsStorage = WITH_FILES.some((type) => offered.has(type));
    const isUp = areWorkersUp && hasRoom && (isStorageUp || !needsStorage);
    const served = (type: ModelType): PartState => {
      if (!offered.has(type)) return 'not_offered';
      return areWorkersUp && (isStorageUp || !WITH_FILES.includes(type)) ? 'ok' : 'down';
    };
    ctx.status = isUp ? 200 : 503;
    ctx.set('Cache-Control', 'no-store');
    if (!isUp) ctx.set('Retry-After', '2');
    ctx.body = {
      status: isUp ? 'ok' : 'down',
      api: 'ok' satisfies PartState,
      db: isDatabaseUp ? 'ok' : 'down',
      workers: areWorkersUp ? 'ok' : 'down',
      queue: hasRoom ? 'ok' : 'down',
      relay: relay.isConnected ? 'ok' : 'degraded',
      llm: served('chat'),
      tts: served('speech'),
      storage: isStorageUp ? 'ok' : 'down',
    };
  };
}

/** GET /health/stats */
export function getHealthStats(services: Services): Handler {
  let known: { at: number; body: Promise<unknown> } | undefined;
  return async (ctx) => {
    if (known === undefined || Date.now() - known.at > STATISTICS_TTL_MS) {
      // whoever asks while they are being read shares them
      const reading = { at: Date.now(), body: readBody(services) };
      known = reading;
      reading.body.catch(() => {
        if (known === reading) known = undefined;
      });
    }
    answerPublicRead(ctx, await known.body, STATISTICS_TTL_MS / 1000);
  };
}

async function readBody({ pool, load }: Services): Promise<unknown> {
  const statistics = await readStatistics(pool);
  return {
    window_seconds: 60,
    requests: statistics.requests,
    requests_per_minute: statistics.requests,
    succeeded: statistics.succeeded,
    failed: statistics.failed,
    latency_ms: { p50: statistics.p50Ms, p95: statistics.p95Ms, p99: statistics.p99Ms },
    queue: { depth: load.depth },
    workers: load.workers,
  };
}
