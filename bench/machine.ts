/** What the figures were measured on, for the head of a report. */
import { cpus, release, totalmem } from 'node:os';
import { format, type Table } from './report.ts';
import { type Database, diskFlushMs, postgresVersion } from './stores.ts';

const BYTES_PER_GIGABYTE = 1_073_741_824;

export async function describeMachine(directory: string, database: Database): Promise<Table> {
  const processors = cpus();
  return {
    title: 'Machine',
    columns: ['', ''],
    rows: [
      ['processor', `${processors.length} × ${processors[0]?.model ?? 'unknown'}`],
      ['memory', format(totalmem() / BYTES_PER_GIGABYTE, 'GB')],
      ['kernel', release()],
      ['Node', process.version],
      [
        'PostgreSQL',
        `${await postgresVersion(database)}, default settings (fsync and synchronous_commit on)`,
      ],
      ['flush of one 8 kB page, median', format(diskFlushMs(directory), 'ms')],
    ],
  };
}
