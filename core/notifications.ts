/**
 * PostgreSQL notifications (LISTEN) on a connection of their own, reconnected for ever. What is heard here only makes caches
 * forget; `onGap` fires whenever notifications may have been missed, and then everything cached must go.
 */
import pg from 'pg';

export interface Notifications {
  close(): Promise<void>;
}

export interface NotificationOptions {
  readonly databaseUrl: string;
  readonly applicationName: string;
  readonly handlers: Readonly<Record<string, (payload: string) => void>>;
  /** Notifications may have been missed: the connection is lost (false), or stands again (true). */
  readonly onGap: (isConnected: boolean) => void;
  readonly onError: (error: Error) => void;
}

const RECONNECT_DELAY_MS = 500;

/** Resolves once listening; throws when the first connection fails. */
export async function listenForNotifications(options: NotificationOptions): Promise<Notifications> {
  let client: pg.Client | undefined;
  let isClosed = false;
  let retry: NodeJS.Timeout | undefined;

  async function connect(): Promise<void> {
    const next = new pg.Client({
      connectionString: options.databaseUrl,
      application_name: options.applicationName,
      connectionTimeoutMillis: 5000,
      keepAlive: true,
    });
    next.on('error', options.onError);
    next.on('end', () => {
      if (client === next) lost();
    });
    next.on('notification', ({ channel, payload }) => options.handlers[channel]?.(payload ?? ''));
    await next.connect();
    for (const channel of Object.keys(options.handlers))
      await next.query(`listen ${pg.escapeIdentifier(channel)}`);
    if (isClosed) {
      await next.end();
      return;
    }
    client = next;
    options.onGap(true);
  }

  function lost(): void {
    client = undefined;
    options.onGap(false);
    reconnectLater();
  }

  function reconnectLater(): void {
    if (isClosed) return;
    retry = setTimeout(() => {
      connect().catch((error: Error) => {
        options.onError(error);
        reconnectLater();
      });
    }, RECONNECT_DELAY_MS);
  }

  await connect();
  return {
    async close() {
      isClosed = true;
      clearTimeout(retry);
      const open = client;
      client = undefined;
      await open?.end();
    },
  };
}
