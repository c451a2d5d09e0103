/**
 * How the lanes hear of new jobs. The engine would listen on a connection of its own for each runner, and every commit that announces
 * jobs would wake them all, though nearly every job is a chat. Here they share the worker's one listening connection, and a runner
 * hears only of jobs that may be its own. What is missed, the engine finds when it polls.
 */
import { EventEmitter } from 'node:events';
import type { Notification, PoolClient } from 'pg';
import type { Pool } from '../core/database.ts';

export interface Announcements {
  /** What to do with the notifications of the engine's channels, by channel. */
  readonly handlers: Readonly<Record<EngineChannel, (payload: string) => void>>;
  /** Announcements may have been missed: everybody looks. */
  lookAgain(): void;
  /** The engine's pool, for a runner of these tasks: where it asks for a connection to listen on, it hears from here. */
  poolFor(pool: Pool, taskNames: readonly string[]): Pool;
}

type EngineChannel = 'jobs:insert' | 'worker:migrate';

/** All that the engine does with the connection it listens on. */
class Ear extends EventEmitter<{
  notification: [Pick<Notification, 'channel' | 'payload'>];
  error: [Error];
}> {
  readonly taskNames: readonly string[];

  constructor(taskNames: readonly string[]) {
    super();
    this.taskNames = taskNames;
  }

  hear(channel: EngineChannel, payload: string): void {
    this.emit('notification', { channel, payload });
  }

  /** LISTEN and UNLISTEN. */
  query(): Promise<void> {
    return Promise.resolve();
  }
}

export function makeAnnouncements(): Announcements {
  const ears = new Set<Ear>();

  function tellAll(channel: EngineChannel, payload: string): void {
    for (const ear of ears) ear.hear(channel, payload);
  }

  function tellWhomItConcerns(payload: string): void {
    const tasks = tasksIn(payload);
    for (const ear of ears) {
      if (tasks === undefined || ear.taskNames.some((name) => tasks.includes(name))) {
        ear.hear('jobs:insert', payload);
      }
    }
  }

  return {
    handlers: {
      'jobs:insert': tellWhomItConcerns,
      'worker:migrate': (payload) => tellAll('worker:migrate', payload),
    },
    lookAgain: () => tellAll('jobs:insert', ''),
    poolFor(pool, taskNames) {
      // with a callback the engine asks for the connection that listens; for everything else it awaits one
      const connect = (callback?: Parameters<Pool['connect']>[0]): Promise<PoolClient> | undefined => {
        if (callback === undefined) return pool.connect();
        const ear = new Ear(taskNames);
        ears.add(ear);
        callback(undefined, ear as unknown as PoolClient, () => void ears.delete(ear));
        return undefined;
      };
      return new Proxy(pool, {
        get(target, property) {
          if (property === 'connect') return connect;
          const value: unknown = Reflect.get(target, property, target);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
}

/** Whose jobs are announced, where who announces them says so (app.submit_funded_requests); otherwise they concern everybody. */
function tasksIn(payload: string): readonly string[] | undefined {
  try {
    return (JSON.parse(payload) as { tasks?: readonly string[] } | null)?.tasks;
  } catch {
    return undefined;
  }
}
