/**
 * The load generator's process: takes one job at a time over IPC, runs it and answers with the result.
 * Run apart so that its event loop and its memory are nobody else's.
 */
import { runClosedLoop } from './load/closed-loop.ts';
import type { LoadJob, LoadResult } from './load/job.ts';
import { runOpenLoop } from './load/open-loop.ts';
import { runStreams } from './load/streams.ts';

export type LoadReply = { readonly result: LoadResult } | { readonly failure: string };

function run(job: LoadJob): Promise<LoadResult> {
  switch (job.kind) {
    case 'closed':
      return runClosedLoop(job);
    case 'streams':
      return runStreams(job);
    case 'open':
      return runOpenLoop(job);
  }
}

process.on('message', (job: LoadJob) => {
  run(job).then(
    (result) => process.send?.({ result } satisfies LoadReply),
    (error: unknown) => process.send?.({ failure: String(error) } satisfies LoadReply),
  );
});
process.once('disconnect', () => process.exit(0));
process.send?.({ isReady: true });
