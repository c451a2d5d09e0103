/** `npm start` on an empty data folder and again on the same one: milliseconds until `/health` answers 200. */
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchContext, Section } from '../context.ts';
import { NOT_OURS } from '../context.ts';
import { median } from '../latency.ts';
import { freePort, waitForStatus } from '../network.ts';
import { startProcess, stopProcess } from '../processes.ts';
import { atMost, format, type SectionReport } from '../report.ts';
import { ROOT_DIRECTORY } from '../service-commands.ts';

const TIMEOUT_MS = 60_000;

interface Start {
  readonly healthyMs: number;
  readonly stopMs: number;
}

async function startOnce(context: BenchContext, dataDirectory: string): Promise<Start> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const started = startProcess({
    name: 'npm-start',
    command: 'npm',
    args: ['start'],
    directory: context.directory,
    cwd: ROOT_DIRECTORY,
    env: { PORT: String(port), ADMIN_PORT: String(adminPort), DATA_DIR: dataDirectory },
  });
  try {
    const healthyMs = await waitForStatus(`http://127.0.0.1:${port}/health`, TIMEOUT_MS, started);
    return { healthyMs, stopMs: await stopProcess(started) };
  } finally {
    await stopProcess(started);
  }
}

async function run(context: BenchContext): Promise<SectionReport> {
  if (!context.options.targets.includes('ours')) return NOT_OURS;
  const first: Start[] = [];
  const again: Start[] = [];
  for (let round = 0; round < context.options.timing.rounds; round += 1) {
    context.say(`cold start, round ${round + 1}`);
    const dataDirectory = join(context.directory, `data-${round}`);
    mkdirSync(dataDirectory);
    // As root the embedded database runs as another user, who must be able to enter the folder.
    chmodSync(dataDirectory, 0o755);
    first.push(await startOnce(context, dataDirectory));
    again.push(await startOnce(context, dataDirectory));
  }
  const healthyMs = (starts: Start[]) => median(starts.map((each) => each.healthyMs));
  const row = (label: string, starts: Start[]) => [
    label,
    format(healthyMs(starts) / 1000, 's'),
    format(median(starts.map((each) => each.stopMs)) / 1000, 's'),
  ];
  return {
    tables: [
      {
        title: 'npm start, everything on one machine, npm itself included',
        columns: ['', 'healthy after', 'stopped after SIGTERM'],
        rows: [row('first time', first), row('again', again)],
      },
    ],
    goals: [
      atMost('cold start of npm start, first time', healthyMs(first) / 1000, 3, 's'),
      atMost('cold start of npm start, again', healthyMs(again) / 1000, 1.5, 's'),
    ],
    notes: [],
  };
}

export const coldStart: Section = { name: 'cold-start', title: 'Cold start', isInQuickRun: false, run };
