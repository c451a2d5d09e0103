/**
 * Counts page views by day and page: in memory, and every few seconds all at once in the database, so that views cost it nothing. Of
 * whoever views a page nothing is kept. What was counted since the last write goes with a process that dies.
 */
import type { Pool } from '../core/database.ts';
import { addPageViews } from './data/page-views.ts';

export interface PageViewCounter {
  /** `page` as the beacon names it. */
  count(page: string): void;
  /** Resolves when what was counted so far is written, or that has failed. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

const FLUSH_MS = 5000;
/** Counted by name between two writes; what is over is counted as one. */
const MAX_PAGES = 1000;
const OTHERS = '(other)';
const MAX_PAGE_CHARACTERS = 128;

export function makePageViewCounter(options: {
  pool: Pool;
  now: () => Date;
  onError: (error: Error) => void;
}): PageViewCounter {
  const { pool, now, onError } = options;
  let counted = new Map<string, { day: string; page: string; views: number }>();
  let writing: Promise<void> = Promise.resolve();

  function add(day: string, page: string, views: number): void {
    const known = counted.get(`${day} ${page}`);
    if (known !== undefined) known.views += views;
    else if (counted.size < MAX_PAGES || page === OTHERS) counted.set(`${day} ${page}`, { day, page, views });
    else add(day, OTHERS, views);
  }

  async function write(): Promise<void> {
    if (counted.size === 0) return;
    const taken = [...counted.values()];
    counted = new Map();
    try {
      await addPageViews(pool, taken);
    } catch (error) {
      onError(error as Error);
      for (const { day, page, views } of taken) add(day, page, views);
    }
  }

  function flush(): Promise<void> {
    writing = writing.then(write);
    return writing;
  }
  const timer = setInterval(() => void flush(), FLUSH_MS);
  timer.unref();

  return {
    count: (page) => add(now().toISOString().slice(0, 10), normalPage(page), 1),
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

/**
 * The path alone, without a host, a query or a fragment, which may say more than a page's name: `/a//b/?x=1` is `/a/b`. What is no path,
 * or has parts that look like somebody's (an e-mail address, a token), is one of the others.
 */
export function normalPage(text: string): string {
  const path = text
    .slice(0, 2048)
    .replace(/^https?:\/\/[^/?#]*/i, '')
    .replace(/[?#].*$/s, '')
    .replace(/\/+/g, '/')
    .replace(/(.)\/$/, '$1');
  if (path === '') return '/';
  const isPath = /^\/[A-Za-z0-9._~/-]*$/.test(path) && path.length <= MAX_PAGE_CHARACTERS;
  return isPath && !path.split('/').some((part) => part.length > 64) ? path : OTHERS;
}
