/** CPU time and memory of processes from Linux's /proc; a process's children can be counted in. */
import { readdirSync, readFileSync } from 'node:fs';

/** Ticks of utime and stime: 100 a second on every Linux that Node runs on. */
const MS_PER_TICK = 10;
const BYTES_PER_MEGABYTE = 1_048_576;

interface ProcStat {
  readonly pid: number;
  readonly parentPid: number;
  readonly ownTicks: number;
  /** Of children that ended and were waited for. */
  readonly endedChildrenTicks: number;
}

function readStat(pid: number): ProcStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the name in brackets and may hold spaces; fields count from after it.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const field = (index: number) => Number(fields[index]);
    return {
      pid,
      parentPid: field(1),
      ownTicks: field(11) + field(12),
      endedChildrenTicks: field(13) + field(14),
    };
  } catch {
    return undefined;
  }
}

function childrenOf(parentPid: number): ProcStat[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readStat(Number(name)))
    .filter((stat) => stat !== undefined)
    .filter((stat) => stat.parentPid === parentPid);
}

/** CPU milliseconds used so far by a process and its direct children, ended ones included. */
export function cpuMs(pid: number): number {
  const own = readStat(pid);
  if (own === undefined) return 0;
  const children = childrenOf(pid).reduce((sum, child) => sum + child.ownTicks + child.endedChildrenTicks, 0);
  return (own.ownTicks + own.endedChildrenTicks + children) * MS_PER_TICK;
}

/** Busy and total CPU milliseconds of the whole machine since it started; time stolen by its host counts as busy. */
export function machineCpuMs(): { busyMs: number; totalMs: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  // user nice system idle iowait irq softirq steal; guest times are part of user.
  const ticks = line.split(/\s+/).slice(1, 9).map(Number);
  const total = ticks.reduce((sum, each) => sum + each, 0);
  const idle = (ticks[3] ?? 0) + (ticks[4] ?? 0);
  return { busyMs: (total - idle) * MS_PER_TICK, totalMs: total * MS_PER_TICK };
}

function kilobytesIn(path: string, label: string): number {
  try {
    return Number(new RegExp(`^${label}:\\s+(\\d+) kB`, 'm').exec(readFileSync(path, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Resident megabytes of one process. */
export function residentMegabytes(pid: number): number {
  return (kilobytesIn(`/proc/${pid}/status`, 'VmRSS') * 1024) / BYTES_PER_MEGABYTE;
}

/** The most megabytes one process had resident since it started. */
export function peakMegabytes(pid: number): number {
  return (kilobytesIn(`/proc/${pid}/status`, 'VmHWM') * 1024) / BYTES_PER_MEGABYTE;
}

/** Megabytes of a process and its children with shared pages counted once (PSS): right for PostgreSQL's shared buffers. */
export function proportionalMegabytes(pid: number): number {
  const pids = [pid, ...childrenOf(pid).map((child) => child.pid)];
  const kilobytes = pids.reduce((sum, each) => sum + kilobytesIn(`/proc/${each}/smaps_rollup`, 'Pss'), 0);
  return (kilobytes * 1024) / BYTES_PER_MEGABYTE;
}
