/**
 * Which folder may import which, and no circles: part of `npm run check`. Imports of types count too.
 * dependency-cruiser would be the usual tool, but reads TypeScript up to version 6 only, and through swc it
 * stops at `using`; oxc-parser (which knip uses as well) reads the language as it is. Packages are knip's matter.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';

interface Rule {
  readonly name: string;
  readonly from: RegExp;
  readonly to: RegExp;
  /** What `to` covers and is fine all the same. */
  readonly except?: RegExp;
}

interface Import {
  readonly from: string;
  readonly line: number;
  readonly to: string;
}

const RULES: readonly Rule[] = [
  { name: 'ingress imports nothing of the workers', from: /^ingress\//, to: /^workers\// },
  { name: 'workers import nothing of the ingress', from: /^workers\//, to: /^ingress\// },
  { name: 'core imports only core', from: /^core\//, to: /^/, except: /^(core\/|package\.json$)/ },
  {
    name: 'admin-graphql imports only core',
    from: /^admin-graphql\//,
    to: /^/,
    except: /^(admin-graphql|core)\//,
  },
  { name: 'only bin, tests and benchmarks import bin', from: /^(?!(bin|test|bench)\/)/, to: /^bin\// },
  {
    name: 'no product code imports test or benchmark code',
    from: /^(?!(test|bench)\/)/,
    to: /^(test|bench)\//,
  },
  {
    name: 'providers know of ours only each other, errors, configuration, types, large JSON and how pictures and audio are made',
    from: /^workers\/providers\//,
    to: /^/,
    except:
      /^(workers\/providers\/|core\/(errors|error-catalogue|config|configuration|types|pictures|lettering|audio|thread|bulky-json)(\.ts$|\/))/,
  },
];

/** Every import of our own files in one source file, written in whatever way (static, re-export, dynamic, of a type). */
function importsOf(file: string): Import[] {
  const source = readFileSync(file, 'utf8');
  const { program, errors } = parseSync(file, source);
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  const imports: Import[] = [];
  const add = (specifier: unknown, start: number) => {
    if (typeof specifier !== 'string' || !specifier.startsWith('.')) return;
    const line = source.slice(0, start).split('\n').length;
    imports.push({ from: file, line, to: path.posix.join(path.posix.dirname(file), specifier) });
  };
  new Visitor({
    ImportDeclaration: (node) => add(node.source.value, node.start),
    ExportNamedDeclaration: (node) => add(node.source?.value, node.start),
    ExportAllDeclaration: (node) => add(node.source.value, node.start),
    ImportExpression: (node) => add('value' in node.source ? node.source.value : undefined, node.start),
    TSImportType: (node) => add(node.source.value, node.start),
  }).visit(program);
  return imports;
}

/** The circles that a depth-first walk meets, each as the files along it, first one repeated at the end. */
function circlesIn(targets: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  const walk = (file: string): void => {
    const seenAt = trail.indexOf(file);
    if (seenAt >= 0) circles.push([...trail.slice(seenAt), file]);
    if (seenAt >= 0 || done.has(file)) return;
    trail.push(file);
    for (const target of targets.get(file) ?? []) walk(target);
    trail.pop();
    done.add(file);
  };
  for (const file of targets.keys()) walk(file);
  return circles;
}

const files = globSync('{core,ingress,workers,admin-graphql,sql,bin,test,bench}/**/*.ts', {
  exclude: ['bench/node_modules/**'],
})
  .map((file) => file.replaceAll(path.sep, '/'))
  .sort();
const importsByFile = new Map(files.map((file) => [file, importsOf(file)]));

const broken = [...importsByFile.values()]
  .flat()
  .flatMap(({ from, line, to }) =>
    RULES.filter((rule) => rule.from.test(from) && rule.to.test(to) && !rule.except?.test(to)).map(
      (rule) => `${from}:${line} imports ${to}: ${rule.name}`,
    ),
  );
const targets = new Map([...importsByFile].map(([file, imports]) => [file, imports.map(({ to }) => to)]));
const circular = circlesIn(targets).map((circle) => `${circle.join(' → ')}: no circular imports`);

for (const problem of [...broken, ...circular]) console.error(problem);
console.log(`${files.length} files, ${broken.length + circular.length} layering problems`);
process.exitCode = broken.length + circular.length === 0 ? 0 : 1;
