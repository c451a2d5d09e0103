/**
 * `npm run bench`: measures the service against the bare upstream and against a stateless gateway, all on this machine and on
 * loopback, and prints a Markdown report with the goals beside the figures. Exits 1 when an answer was wrong, a section failed
 * or the books are not clean; a goal that is not met is reported and does not fail the run.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runBench } from './bench-run.ts';
import type { Section } from './context.ts';
import { EXIT_CODE_FAILED, runInFolder } from './folder.ts';
import { type BenchOptions, readOptions } from './options.ts';
import { closedLoop } from './sections/closed-loop.ts';
import { coldStart } from './sections/cold-start.ts';
import { engine } from './sections/engine.ts';
import { images } from './sections/images.ts';
import { memory } from './sections/memory.ts';
import { openLoop, slowUpstream } from './sections/slow-upstream.ts';
import { hotAccount, slowDisk, sustained } from './sections/steadiness.ts';
import { streams } from './sections/streams.ts';

const SECTIONS: readonly Section[] = [
  closedLoop,
  streams,
  slowUpstream,
  openLoop,
  engine,
  hotAccount,
  slowDisk,
  sustained,
  memory,
  images,
];
const LAST_SECTIONS: readonly Section[] = [coldStart];

function chosen(sections: readonly Section[], options: BenchOptions): Section[] {
  return sections.filter((section) => {
    if (options.only.length > 0) return options.only.includes(section.name);
    return section.isInQuickRun || !options.isQuick;
  });
}

function say(line: string): void {
  console.error(`${new Date().toTimeString().slice(0, 8)} ${line}`);
}

function writeReport(markdown: string): void {
  const directory = join(import.meta.dirname, 'results');
  mkdirSync(directory, { recursive: true });
  const file = join(directory, `${new Date().toISOString().slice(0, 10)}.md`);
  writeFileSync(file, `${markdown}\n`);
  say(`written to ${file}`);
}

async function main(options: BenchOptions, directory: string): Promise<number> {
  const startedAt = performance.now();
  const outcome = await runBench(
    options,
    chosen(SECTIONS, options),
    chosen(LAST_SECTIONS, options),
    directory,
    say,
  );
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
  const kind = options.isQuick ? 'quick run' : 'full run';
  const head = `# Benchmark, ${new Date().toISOString().slice(0, 10)} (${kind}, ${minutes} min)`;
  const problems = outcome.problems.map((problem) => `- ${problem}`).join('\n');
  const markdown = [head, outcome.markdown, ...(problems === '' ? [] : [`## Problems\n\n${problems}`])].join(
    '\n\n',
  );
  console.log(markdown);
  if (options.isWritten) writeReport(markdown);
  return problems === '' ? 0 : EXIT_CODE_FAILED;
}

let options: BenchOptions;
try {
  options = readOptions(
    process.argv.slice(2),
    [...SECTIONS, ...LAST_SECTIONS].map(({ name }) => name),
  );
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(2);
}

runInFolder((directory) => main(options, directory), say);
