/**
 * Run by transient-map.test.ts in a process of its own with --expose-gc: entries come and go as requests do, after one full
 * collection. Prints the bytes by which the old space grew.
 */
import { getHeapSpaceStatistics } from 'node:v8';
import { TransientMap } from '../../core/transient-map.ts';

const ENTRIES = 40_000;
const AT_ONCE = 50;

const map = new TransientMap<object>();
let next = 0;

function churn(entries: number): void {
  for (const end = next + entries; next < end; next += 1) {
    map.set(`entry ${next}`, { numbers: Array.from({ length: 300 }, (_, index) => index + 0.5) });
    map.delete(`entry ${next - AT_ONCE}`);
  }
}

function oldSpaceBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0;
}

churn(2000);
globalThis.gc?.();
const before = oldSpaceBytes();
churn(ENTRIES);
process.stdout.write(String(oldSpaceBytes() - before));
