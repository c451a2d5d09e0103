/**
 * Heartbeats: every ingress and worker says in the database that it lives, so that the jobs of one that died are taken up
 * within seconds.
 */
import type { Pool } from './database.ts';

export interface Heartbeat {
  /** Takes the process off the list. */
  stop(): Promise<void>;
}

const BEAT = { name: 'beat', text: "select app.beat($1, $2, $3, '{}'::jsonb)" };

/** Resolves after the first beat. */
export async function startHeartbeat(options: {
  pool: Pool;
  process: { id: string; kind: 'ingress' | 'worker'; poolId: string | null };
  intervalMs: number;
  onError: (error: Error) => void;
}): Promise<Heartbeat> {
  const { pool, process: self } = options;
  const beat = async (): Promise<void> => {
    await pool.query({ ...BEAT, values: [self.id, self.kind, self.poolId] });
  };
  await beat();
  let isBeating = false;
  const timer = setInterval(() => {
    if (isBeating) return;
    isBeating = true;
    beat()
      .catch(options.onError)
      .finally(() => {
        isBeating = false;
      });
  }, options.intervalMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await pool.query('select app.leave($1)', [self.id]);
    },
  };
}
