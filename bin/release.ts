/**
 * The release step of a deployment: brings the database up to date before the new processes start. Safe to run again,
 * and by several machines at once.
 */
import { loadConfig } from '../core/config.ts';
import { describeDatabaseError } from './svc/database.ts';

async function release(databaseUrl: string | undefined): Promise<void> {
  if (databaseUrl === undefined) {
    throw new Error('DATABASE_URL is not set: release needs the address of the database');
  }
  const { migrate } = await import('./migrate.ts');
  const { migrations, warnings } = await migrate(databaseUrl);
  for (const warning of warnings) console.warn(`release: warning: ${warning}`);
  for (const name of migrations) console.log(`release: applied migration ${name}`);
  console.log(
    `release: ${migrations.length === 0 ? 'no new migrations' : `${migrations.length} new migrations`}; ` +
      'functions and grants are up to date',
  );
}

let databaseUrl: string | undefined;
try {
  databaseUrl = loadConfig().databaseUrl;
  await release(databaseUrl);
} catch (error) {
  console.error(`release: ${describeDatabaseError(error, databaseUrl)}`);
  process.exitCode = 1;
}
