/** One run from set-up to the check of the books: starts everybody, runs the sections, and collects the report. */
import { checkBooks } from './books.ts';
import type { BenchContext, Section, Target } from './context.ts';
import { median } from './latency.ts';
import { LoadGenerator } from './load-generator.ts';
import { describeMachine } from './machine.ts';
import { startMock } from './mock.ts';
import type { BenchOptions } from './options.ts';
import type { BenchProcess } from './processes.ts';
import { format, type Goal, renderGoals, renderSection, renderTable, type SectionReport } from './report.ts';
import { Service } from './service.ts';
import { type Database, type Redis, startDatabase, startRedis } from './stores.ts';
import { installPortkey, PORTKEY_VERSION, type Portkey, startPortkey } from './targets/portkey.ts';
import { MODELS } from './wire.ts';

const FIRST_WARM_UP_SECONDS = 12;
const FIRST_WARM_UP_CONNECTIONS = 50;
const BUSY_MACHINE_PERCENT = 5;

export interface RunOutcome {
  readonly markdown: string;
  readonly problems: readonly string[];
}

interface Parties {
  readonly mock: BenchProcess;
  readonly mockBaseUrl: string;
  readonly database: Database;
  readonly redis: Redis;
  readonly portkey: Portkey | undefined;
  readonly service: Service | undefined;
}

async function startParties(
  options: BenchOptions,
  directory: string,
  say: (line: string) => void,
): Promise<Parties> {
  if (options.targets.includes('portkey')) installPortkey(say);
  const { process: mock, baseUrl: mockBaseUrl } = await startMock(directory);
  say('starting PostgreSQL and Redis');
  const database = await startDatabase(directory);
  const redis = await startRedis(directory);
  const portkey = options.targets.includes('portkey')
    ? await startPortkey(mockBaseUrl, directory)
    : undefined;
  const { accountCount } = options.timing;
  if (options.targets.includes('ours')) say(`starting the service with ${accountCount} accounts`);
  const service = options.targets.includes('ours')
    ? await Service.start({ database, redis, mockBaseUrl, directory, accountCount })
    : undefined;
  return { mock, mockBaseUrl, database, redis, portkey, service };
}

function targetsOf(options: BenchOptions, { mockBaseUrl, portkey, service }: Parties): Target[] {
  const apiKeys = ['sk-bench'];
  const direct: Target = {
    name: 'direct',
    label: 'mock direct',
    load: { url: `${mockBaseUrl}/chat/completions`, headers: {}, apiKeys },
  };
  const targets: (Target | undefined)[] = [
    options.targets.includes('direct') ? direct : undefined,
    portkey && {
      name: 'portkey',
      label: `Portkey ${PORTKEY_VERSION}`,
      load: { url: portkey.url, headers: portkey.headers, apiKeys },
    },
    service && { name: 'ours', label: 'ours', load: service.target() },
  ];
  return targets.filter((target) => target !== undefined);
}

function watchedPids(parties: Parties, load: LoadGenerator): ReadonlyMap<string, number> {
  return new Map([
    ['mock', parties.mock.pid],
    ['load', load.pid],
    ['postgres', parties.database.postgresPid],
    ...(parties.redis.process ? [['redis', parties.redis.process.pid] as const] : []),
    ...(parties.portkey ? [['portkey', parties.portkey.process.pid] as const] : []),
    ...(parties.service?.pids ?? []),
  ]);
}

/** Lets every just-in-time compiler see its hot paths, streamed and not, before anything is timed. */
async function warmUp({ targets, load }: BenchContext): Promise<void> {
  for (const { load: target } of targets) {
    const connections = FIRST_WARM_UP_CONNECTIONS;
    const seconds = FIRST_WARM_UP_SECONDS;
    await load.run({ kind: 'closed', target, model: MODELS.instant, connections, until: { seconds } });
    await load.run({ kind: 'streams', target, model: MODELS.stream, connections, seconds });
  }
}

/** Runs a section; what it throws becomes a problem of the run, and the others still run. */
async function runSection(
  section: Section,
  context: BenchContext,
  problems: string[],
): Promise<SectionReport> {
  try {
    return await section.run(context);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    problems.push(`section ${section.name}: ${message}`);
    return { tables: [], goals: [], notes: [`**Failed:** ${message}`] };
  }
}

/** Says how quiet the machine was: figures of a busy one are not worth comparing. */
function foreignLoadNote(shares: readonly number[]): string {
  const [middle, worst] = [median(shares) * 100, Math.max(...shares, 0) * 100];
  const warning =
    middle > BUSY_MACHINE_PERCENT ? ' **The machine was busy with something else: measure again.**' : '';
  return `Others used ${format(middle, '%')} of the machine's CPU while jobs were timed (median; worst ${format(worst, '%')}).${warning}`;
}

/** `lastSections` run after the books are checked and the service is stopped. */
export async function runBench(
  options: BenchOptions,
  sections: readonly Section[],
  lastSections: readonly Section[],
  directory: string,
  say: (line: string) => void,
): Promise<RunOutcome> {
  const problems: string[] = [];
  const goals: Goal[] = [];
  const parts: string[] = [];
  const parties = await startParties(options, directory, say);
  const load = await LoadGenerator.start(directory);
  const context: BenchContext = {
    options,
    directory,
    targets: targetsOf(options, parties),
    load,
    database: parties.database,
    redis: parties.redis,
    service: parties.service,
    figures: new Map(),
    watched: () => watchedPids(parties, load),
    say,
  };
  const perform = async (section: Section) => {
    const report = await runSection(section, context, problems);
    goals.push(...report.goals);
    parts.push(renderSection(section.title, report));
  };

  parts.push(renderTable(await describeMachine(directory, parties.database)));
  if (sections.length > 0) await warmUp(context);
  for (const section of sections) await perform(section);
  if (parties.service !== undefined) {
    say('checking the books');
    const books = await checkBooks(parties.service, load);
    problems.push(...books.problems);
    parts.push(books.markdown);
    await parties.service.stopProcesses();
  }
  for (const section of lastSections) await perform(section);
  parts.push(foreignLoadNote(load.foreignCpuShares), renderGoals(goals));
  return { markdown: parts.join('\n\n'), problems };
}
