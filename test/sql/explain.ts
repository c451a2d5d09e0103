/**
 * The plans that statements really ran with, those inside functions too: PostgreSQL's auto_explain sends each as a notice
 * to the session itself. And what a plan read: a scan that reads a table whole is found by its rows as well as by its name,
 * since `enable_seqscan = off` only makes it read the whole table through an index.
 */
import pg from 'pg';

/** One scan of a table in a plan that ran. */
export interface Scan {
  readonly node: string;
  readonly table: string;
  /** Rows looked at in all its loops, the filtered ones included. */
  readonly rows: number;
  readonly statement: string;
}

/** Pairs of rows that a join compared and found not to belong together. */
export interface Mismatches {
  readonly pairs: number;
  readonly statement: string;
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

interface Explained {
  readonly 'Query Text': string;
  readonly Plan: PlanNode;
}

const SETTINGS = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_format': 'json',
  'auto_explain.log_level': 'notice',
};

/** Connection options with which a session explains itself. */
export function explainedConfig(url: string, more: readonly string[] = []): pg.ClientConfig {
  const settings = [...Object.entries(SETTINGS).map(([name, value]) => `${name}=${value}`), ...more];
  return { connectionString: url, options: settings.map((setting) => `-c ${setting}`).join(' ') };
}

/** Collects the scans that a session tells of, and what its joins compared in vain. */
export function collectScans(client: pg.ClientBase, scans: Scan[], mismatches: Mismatches[] = []): void {
  client.on('notice', ({ message }) => {
    const json = /^duration: \S+ ms\s+plan:\n([\s\S]*)$/.exec(message ?? '')?.[1];
    if (json === undefined) return;
    const { 'Query Text': statement, Plan: plan } = JSON.parse(json) as Explained;
    walk(plan, statement.replace(/\s+/g, ' ').trim(), scans, mismatches);
  });
}

function walk(node: PlanNode, statement: string, scans: Scan[], mismatches: Mismatches[]): void {
  const table = node['Relation Name'];
  // pruned while running: not looked at
  const wasRun = (node['Actual Loops'] ?? 0) > 0;
  if (table !== undefined && wasRun && node['Node Type'].endsWith('Scan')) {
    const perLoop =
      (node['Actual Rows'] ?? 0) +
      (node['Rows Removed by Filter'] ?? 0) +
      (node['Rows Removed by Index Recheck'] ?? 0);
    scans.push({ node: node['Node Type'], table, rows: perLoop * (node['Actual Loops'] ?? 0), statement });
  }
  const pairs = (node['Rows Removed by Join Filter'] ?? 0) * (node['Actual Loops'] ?? 0);
  if (pairs > 0) mismatches.push({ pairs, statement });
  for (const child of node.Plans ?? []) walk(child, statement, scans, mismatches);
}

export interface ExplainedClient {
  readonly client: pg.Client;
  /** The scans since the last call. */
  take(): Scan[];
  takeMismatches(): Mismatches[];
}

export async function connectExplained(url: string, more: readonly string[] = []): Promise<ExplainedClient> {
  const client = new pg.Client(explainedConfig(url, more));
  await client.connect();
  const scans: Scan[] = [];
  const mismatches: Mismatches[] = [];
  collectScans(client, scans, mismatches);
  return { client, take: () => scans.splice(0), takeMismatches: () => mismatches.splice(0) };
}
