/**
 * Loaded into a process of the service (`--import`) by the images section: measures how late its event loop is. On SIGUSR2
 * it writes what it saw since the last time to `$LOOP_DELAY_DIRECTORY/<pid>.json`, in milliseconds, and begins anew.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 5;
const NS_PER_MS = 1e6;

const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
histogram.enable();

process.on('SIGUSR2', () => {
  // Node counts the whole interval between two ticks: what is over the resolution is the delay
  const late = (percentile: number) =>
    Math.max(0, histogram.percentile(percentile) / NS_PER_MS - RESOLUTION_MS);
  const seen = { p50Ms: late(50), p99Ms: late(99), maxMs: histogram.max / NS_PER_MS - RESOLUTION_MS };
  histogram.reset();
  const file = join(process.env.LOOP_DELAY_DIRECTORY ?? '', `${process.pid}.json`);
  writeFileSync(`${file}.part`, JSON.stringify(seen));
  renameSync(`${file}.part`, file);
});
