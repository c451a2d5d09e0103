/**
 * The release step of a deployment: brings the database up to date before the new processes start, and imports CATALOG_FILE
 * where one is named. Safe to run again, and by several machines at once.
 */
import { CatalogueFileError } from '../core/catalogue-file/error.ts';
import { type Config, loadConfig, warningsOf } from '../core/config.ts';
import { describeDatabaseError } from '../core/database-errors.ts';

const say = (line: string): void => console.log(`release: ${line}`);

async function release(config: Config): Promise<void> {
  if (config.databaseUrl === undefined) {
    throw new Error('DATABASE_URL is not set: release needs the address of the database');
  }
  const { migrate } = await import('./migrate.ts');
  const { migrations, warnings } = await migrate(config.databaseUrl);
  for (const warning of [...warningsOf(config), ...warnings]) console.warn(`release: warning: ${warning}`);
  for (const name of migrations) say(`applied migration ${name}`);
  const count = migrations.length;
  say(
    `${count === 0 ? 'no' : count} new migration${count === 1 ? '' : 's'}; functions and grants are up to date`,
  );
  if (config.catalogFile === undefined) return;
  const { importFile } = await import('./svc/catalogue.ts');
  const { text, notes = [] } = await importFile(config, config.catalogFile, { prune: false }, 'release');
  for (const line of [text, ...notes]) say(line);
}

let databaseUrl: string | undefined;
try {
  const config = loadConfig();
  databaseUrl = config.databaseUrl;
  await release(config);
} catch (error) {
  console.error(
    error instanceof CatalogueFileError
      ? error.message
      : `release: ${describeDatabaseError(error, databaseUrl)}`,
  );
  process.exitCode = 1;
}
