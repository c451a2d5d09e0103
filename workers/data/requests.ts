/** What a worker asks the database about the requests it runs. */
import type { Pool } from '../../core/database.ts';

const FIND_STATE = {
  name: 'find_request_state',
  text: `select q.state, exists (select from app.holds h where h.request_id = q.id) as "isOpen",
      q.ingress_id is not null and exists (select from app.processes p where p.id = q.ingress_id) as "isAwaited"
    from app.requests q where q.id = $1`,
};

export interface OpenState {
  readonly state: string;
  /** The hold is still there: the request may be run and settled. */
  readonly isOpen: boolean;
  /** The ingress that waits for it is alive. */
  readonly isAwaited: boolean;
}

export async function findState(pool: Pool, id: string): Promise<OpenState | undefined> {
  const { rows } = await pool.query<OpenState>({ ...FIND_STATE, values: [id] });
  return rows[0];
}

export async function loadInput(pool: Pool, id: string): Promise<unknown> {
  const { rows } = await pool.query<{ body: string }>({
    name: 'load_input',
    text: 'select body from app.request_inputs where request_id = $1',
    values: [id],
  });
  return rows[0] === undefined ? undefined : (JSON.parse(rows[0].body) as unknown);
}

export async function markRunning(pool: Pool, ids: readonly string[]): Promise<void> {
  await pool.query({ name: 'mark_running', text: 'select app.mark_running($1::uuid[])', values: [ids] });
}

/** Of these running requests, those that somebody else has ended. */
export async function findLost(pool: Pool, ids: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'lost_holds',
    text: 'select id from app.lost_holds($1::uuid[]) id',
    values: [ids],
  });
  return rows.map((row) => row.id);
}

/** Of these ingresses, those that are alive. */
export async function findLiveIngresses(pool: Pool, ids: readonly string[]): Promise<Set<string>> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'find_live_ingresses',
    text: 'select id from app.processes where id = any ($1::uuid[])',
    values: [ids],
  });
  return new Set(rows.map((row) => row.id));
}
