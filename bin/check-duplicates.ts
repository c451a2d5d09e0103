/**
 * Finds code that was copied: a run of equal lines that stands in two places of the product, the benchmarks
 * or the test helpers. Part of `npm run check`. Tests themselves may repeat; that keeps each one readable.
 * jscpd would be the usual tool; its releases need a binary package per platform that not every registry has.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** A shorter run of equal lines is shape (a list of fields, a call's arguments) more often than logic. */
const MIN_LINES = 12;

interface Line {
  readonly file: string;
  readonly number: number;
  readonly text: string;
}

/** A file's lines that carry logic: no blanks, comments, imports, or lone brackets. */
function significantLines(file: string): Line[] {
  const source = readFileSync(file, 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
    .replace(/^import\s[^;]*;/gm, (statement) => statement.replace(/[^\n]/g, ''));
  return source
    .split('\n')
    .map((text, index) => ({ file, number: index + 1, text: text.trim() }))
    .filter(({ text }) => /\w/.test(text) && !text.startsWith('//'));
}

const files = globSync('{core,ingress,workers,admin-graphql,bin,bench,test/helpers}/**/*.ts', {
  exclude: ['bench/node_modules/**'],
})
  .map((file) => file.replaceAll(path.sep, '/'))
  .sort();

const firstSeen = new Map<string, Line>();
const problems: string[] = [];
for (const file of files) {
  const lines = significantLines(file);
  let reportedUpTo = 0;
  for (let start = 0; start + MIN_LINES <= lines.length; start += 1) {
    const run = lines.slice(start, start + MIN_LINES);
    const here = run[0];
    if (here === undefined) break;
    const key = run.map(({ text }) => text).join('\n');
    const there = firstSeen.get(key);
    if (there === undefined) {
      firstSeen.set(key, here);
    } else if (start >= reportedUpTo) {
      problems.push(
        `${here.file}:${here.number} repeats ${there.file}:${there.number} (${MIN_LINES} lines or more)`,
      );
      reportedUpTo = start + MIN_LINES;
    }
  }
}

for (const problem of problems) console.error(problem);
console.log(`${files.length} files, ${problems.length} copied passages`);
process.exitCode = problems.length === 0 ? 0 : 1;
