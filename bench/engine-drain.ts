/**
 * Bare graphile-worker in a process of its own: queues trivial jobs, drains them with the settings named on the command
 * line, and reports jobs per second over IPC. One job is one counter increment; nothing is reserved, settled or answered.
 */
import { makeWorkerUtils, type RunnerOptions, run } from 'graphile-worker';
import pg from 'pg';

/** Settings of the engine's own performance test (its perfTest/graphile.config.js), and the plain defaults. */
const SETTINGS: Readonly<Record<string, Pick<RunnerOptions, 'concurrency' | 'preset' | 'maxPoolSize'>>> = {
  defaults: {},
  concurrent: { concurrency: 24, maxPoolSize: 25 },
  batched: {
    concurrency: 24,
    maxPoolSize: 25,
    preset: {
      worker: { localQueue: { size: 500, refetchDelay: { durationMs: 10 } }, completeJobBatchDelay: 0 },
    },
  },
};

const [connectionString, settingsName, jobCountText] = process.argv.slice(2);
const settings = SETTINGS[settingsName ?? ''];
if (connectionString === undefined || settings === undefined || jobCountText === undefined)
  throw new Error('usage: engine-drain.ts DATABASE_URL defaults|concurrent|batched JOB_COUNT');
const jobCount = Number(jobCountText);

const utilities = await makeWorkerUtils({ connectionString });
await utilities.migrate();
await utilities.release();

const client = new pg.Client({ connectionString });
await client.connect();
await client.query(
  `select count(*) from graphile_worker.add_jobs(array(
     select json_populate_record(null::graphile_worker.job_spec, json_build_object('identifier', 'count', 'payload', json_build_object('id', n)))
     from generate_series(1, $1::int) n))`,
  [jobCount],
);
await client.query('vacuum analyze');
await client.end();

let doneCount = 0;
let startedAt = 0;
const { promise: drained, resolve: onDrained } = Promise.withResolvers<void>();
const runner = await run({
  connectionString,
  noHandleSignals: true,
  parsedCronItems: [],
  ...settings,
  taskList: {
    count: () => {
      if (doneCount === 0) startedAt = performance.now();
      doneCount += 1;
      if (doneCount === jobCount) onDrained();
    },
  },
});
await drained;
const seconds = (performance.now() - startedAt) / 1000;
await runner.stop();
process.send?.({ jobsPerSecond: jobCount / seconds });
process.disconnect?.();
