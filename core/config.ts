/**
 * Configuration from the environment: every name, its unit and its default in one place. Besides it only
 * provider credentials (named by the catalogue), demo credentials (bin/demo.ts) and the operators' JWT settings
 * (admin-graphql/settings.ts) are read from there.
 */
import { ISO_TIME_HINT, parseIsoTime } from './iso-time.ts';

export interface Config {
  readonly isProduction: boolean;
  readonly host: string;
  readonly port: number;
  readonly adminPort: number;
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  readonly redisUrl: string | undefined;
  readonly catalogFile: string | undefined;
  readonly logLevel: string;
  /** Where callers reach the service (no trailing slash); undefined: where each request came to. */
  readonly baseUrl: string | undefined;
  /** Where certificates are shown (no trailing slash); undefined: as `baseUrl`. */
  readonly certUrl: string | undefined;
  /** Trust `X-Forwarded-*` from this many proxies in front (0: none). */
  readonly proxyCount: number;

  /** Seconds the ingress waits before it answers 202; the edge cuts at 100. */
  readonly edgeWaitSeconds: number;
  /** Seconds a chat request may take in all before it is voided. */
  readonly chatTimeoutSeconds: number;
  /** Seconds an image request may take in all before it is voided. */
  readonly imageTimeoutSeconds: number;
  /** Seconds a speech or a transcription may take in all before it is voided. */
  readonly speechTimeoutSeconds: number;
  /** Unicode code points of a text to be spoken. */
  readonly maxSpeechCharacters: number;
  /** Bytes of a JSON body that are read before it is refused. */
  readonly maxBodyBytes: number;
  /** The same for a body with pictures in it, JSON or a form. */
  readonly maxImageBodyBytes: number;
  /** Bytes of large request bodies one ingress has in memory at once, a third of it for callers without a key; others wait unread. */
  readonly bodyBudgetBytes: number;
  /** Where files are kept: `file:///path` or `s3://bucket/prefix?…`; undefined: `assets` in the data folder. */
  readonly assetStore: string | undefined;
  /** Days until a result's files expire. */
  readonly assetRetentionDays: number;
  /** Requests waiting or running in the whole service before new ones are refused with 503. */
  readonly maxQueueDepth: number;
  /** Bytes of a stream in flight between worker and a slow reader. */
  readonly streamWindowBytes: number;
  /** Seconds a reader of a stream may take none of it before the request is ended. */
  readonly slowReaderSeconds: number;
  /** Seconds between comments on an idle stream. */
  readonly streamCommentSeconds: number;

  /** PEM texts of what pictures are signed with, leaf first; undefined: a chain of our own in DATA_DIR. */
  readonly c2paCertificate: string | undefined;
  readonly c2paPrivateKey: string | undefined;
  /** Calls of unauthenticated tools by one client address per area and day; 0: no such cap. */
  readonly ipDailyCap: number;

  /** For approximate yen amounts only. */
  readonly yenPerUsd: number;
  readonly initialGrantAp: number;
  readonly minimumAccountAgeHours: number;
  /** AP of granted (not purchased) balance an account may use per area and day; 0: no such cap. */
  readonly grantDailyCapAp: number;
  /** From this date live keys without a card may not spend granted AP. */
  readonly cardRequiredFrom: Date;
  /** `svc_beta_` keys stop at this moment. */
  readonly betaEndsAt: Date | undefined;
  /** Output tokens below which a chat request is not worth running. */
  readonly minimumOutputTokens: number;

  /** Jobs one worker process runs at once: what matters is requests waiting on providers. */
  readonly workerConcurrency: number;
  /** Image requests one worker process has under way at once. */
  readonly imageConcurrency: number;
  /** Bytes of callers' files that one worker process has in memory at once (those not passed on as they are read); more wait. */
  readonly inputBudgetBytes: number;
  /** Speeches one worker makes at once: with an S3 store each takes two parts of an upload of memory. */
  readonly speechConcurrency: number;
  /** Transcriptions whose audio (up to 25 MB each) may be in one worker's memory at once. */
  readonly transcriptionConcurrency: number;
  /** Bytes of image answers, as providers send them, that one worker process has in memory at once. */
  readonly imageAnswerBytes: number;
  /** Bytes of memory that large chat answers, parsed, take in one worker process at once (several times what they are on the wire). */
  readonly chatAnswerBytes: number;
  readonly heartbeatSeconds: number;
  /** Silence after which a process is taken for dead. */
  readonly deadAfterSeconds: number;

  readonly userTokenSecret: string | undefined;
  readonly userTokenIssuer: string;
  readonly userTokenAudience: string;
}

/** Pino's, and none at all. */
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

type Environment = Readonly<Record<string, string | undefined>>;

/** Throws an Error that names the variable when one is not what it should be. */
export function loadConfig(env: Environment = process.env): Config {
  return {
    isProduction: env.NODE_ENV === 'production',
    // empty would be every interface
    host: env.HOST || (env.NODE_ENV === 'production' ? '0.0.0.0' : '127.0.0.1'),
    port: wholeNumber(env, 'PORT', 3000, 0, 65535),
    adminPort: wholeNumber(env, 'ADMIN_PORT', 3001, 0, 65535),
    dataDir: env.DATA_DIR || '.data',
    databaseUrl: env.DATABASE_URL || undefined,
    redisUrl: env.REDIS_URL || undefined,
    catalogFile: env.CATALOG_FILE || undefined,
    logLevel: logLevel(env),
    baseUrl: address(env, 'BASE_URL'),
    certUrl: address(env, 'CERT_URL'),
    proxyCount: wholeNumber(env, 'PROXY_COUNT', 0, 0, 10),

    edgeWaitSeconds: wholeNumber(env, 'EDGE_WAIT_SECONDS', 95, 1, 3600),
    chatTimeoutSeconds: wholeNumber(env, 'CHAT_TIMEOUT_SECONDS', 600, 1, 86400),
    imageTimeoutSeconds: wholeNumber(env, 'IMAGE_TIMEOUT_SECONDS', 600, 1, 86400),
    speechTimeoutSeconds: wholeNumber(env, 'SPEECH_TIMEOUT_SECONDS', 600, 1, 86400),
    maxSpeechCharacters: wholeNumber(env, 'MAX_SPEECH_CHARACTERS', 5000, 1, 100_000),
    maxImageBodyBytes: wholeNumber(env, 'MAX_IMAGE_BODY_BYTES', 50 * 1024 * 1024, 1024, 1024 ** 3),
    maxBodyBytes: wholeNumber(env, 'MAX_BODY_BYTES', 20 * 1024 * 1024, 1024, 1024 ** 3),
    bodyBudgetBytes: wholeNumber(env, 'BODY_BUDGET_MB', 48, 1, 65_536) * 1024 * 1024,
    assetStore: env.ASSET_STORE || undefined,
    assetRetentionDays: wholeNumber(env, 'ASSET_RETENTION_DAYS', 30, 1, 3650),
    maxQueueDepth: wholeNumber(env, 'MAX_QUEUE_DEPTH', 20_000, 1, 10_000_000),
    streamWindowBytes: wholeNumber(env, 'STREAM_WINDOW_BYTES', 256 * 1024, 16 * 1024, 64 * 1024 * 1024),
    slowReaderSeconds: wholeNumber(env, 'SLOW_READER_SECONDS', 30, 1, 3600),
    streamCommentSeconds: wholeNumber(env, 'STREAM_COMMENT_SECONDS', 15, 1, 3600),

    c2paCertificate: env.C2PA_CERTIFICATE || undefined,
    c2paPrivateKey: env.C2PA_PRIVATE_KEY || undefined,
    ipDailyCap: wholeNumber(env, 'IP_DAILY_CAP', 1000, 0, 1_000_000_000),

    yenPerUsd: wholeNumber(env, 'YEN_PER_USD', 150, 1, 10_000),
    initialGrantAp: wholeNumber(env, 'INITIAL_GRANT_AP', 100_000, 0, 1_000_000_000),
    minimumAccountAgeHours: wholeNumber(env, 'MINIMUM_ACCOUNT_AGE_HOURS', 0, 0, 24 * 365),
    grantDailyCapAp: wholeNumber(env, 'GRANT_DAILY_CAP_AP', 100_000, 0, 1_000_000_000),
    cardRequiredFrom: date(env, 'CARD_REQUIRED_FROM', '2026-10-21T00:00:00Z') as Date,
    betaEndsAt: date(env, 'BETA_ENDS_AT', undefined),
    minimumOutputTokens: wholeNumber(env, 'MINIMUM_OUTPUT_TOKENS', 16, 1, 4096),

    workerConcurrency: wholeNumber(env, 'WORKER_CONCURRENCY', 1000, 1, 10_000),
    imageConcurrency: wholeNumber(env, 'IMAGE_CONCURRENCY', 64, 1, 10_000),
    inputBudgetBytes: wholeNumber(env, 'INPUT_BUDGET_MB', 128, 1, 65_536) * 1024 * 1024,
    speechConcurrency: wholeNumber(env, 'SPEECH_CONCURRENCY', 200, 1, 10_000),
    transcriptionConcurrency: wholeNumber(env, 'TRANSCRIPTION_CONCURRENCY', 16, 1, 10_000),
    imageAnswerBytes: wholeNumber(env, 'IMAGE_ANSWER_MB', 64, 1, 65_536) * 1024 * 1024,
    chatAnswerBytes: wholeNumber(env, 'CHAT_ANSWER_MB', 192, 1, 65_536) * 1024 * 1024,
    heartbeatSeconds: wholeNumber(env, 'HEARTBEAT_SECONDS', 2, 1, 60),
    deadAfterSeconds: wholeNumber(env, 'DEAD_AFTER_SECONDS', 8, 2, 600),

    userTokenSecret: env.USER_TOKEN_SECRET || undefined,
    userTokenIssuer: env.USER_TOKEN_ISSUER || 'svc',
    userTokenAudience: env.USER_TOKEN_AUDIENCE || 'svc',
  };
}

/** What works, and not as it should in production. */
export function warningsOf({ isProduction, baseUrl }: Pick<Config, 'isProduction' | 'baseUrl'>): string[] {
  if (!isProduction || baseUrl !== undefined) return [];
  return [
    'BASE_URL is not set: addresses in answers are those that callers name (Host, and behind proxies X-Forwarded-Host)',
  ];
}

/** The stores a process of its own needs; throws one line that says what is missing. */
export function requireStores(
  { databaseUrl, redisUrl }: Config,
  name: string,
): { databaseUrl: string; redisUrl: string } {
  if (databaseUrl === undefined) {
    throw new Error(`DATABASE_URL is not set: ${name} needs the address of a PostgreSQL database`);
  }
  if (redisUrl === undefined) {
    throw new Error(
      'REDIS_URL is not set: web and worker apart need Redis between them (one process without it: npm start)',
    );
  }
  return { databaseUrl, redisUrl };
}

function wholeNumber(
  env: Environment,
  name: string,
  fallback: number,
  minimum: number,
  maximum: number,
): number {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const value = Number(text);
  if (!Number.isInteger(value) || value < minimum || value > maximum) {
    throw new Error(`${name} must be a whole number from ${minimum} to ${maximum}`);
  }
  return value;
}

function date(env: Environment, name: string, fallback: string | undefined): Date | undefined {
  const text = env[name] || fallback;
  if (text === undefined) return undefined;
  const value = parseIsoTime(text);
  if (value === undefined) throw new Error(`${name} must be ${ISO_TIME_HINT}`);
  return value;
}

/** Without its last slash: paths are put behind it. */
function address(env: Environment, name: string): string | undefined {
  const text = env[name];
  if (text === undefined || text === '') return undefined;
  if (!/^https?:\/\/[^/?#\s][^?#\s]*$/.test(text) || !URL.canParse(text)) {
    throw new Error(`${name} must be an http or https address without query or fragment`);
  }
  return text.replace(/\/+$/, '');
}

function logLevel(env: Environment): string {
  const level = env.LOG_LEVEL || 'info';
  if (!LOG_LEVELS.includes(level)) throw new Error(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}`);
  return level;
}
