/** What can go wrong on the way to the database, in one line for the person who starts a process or a command. */

/** 'no such schema', 'no such table', 'no such function': `release` has not run. */
const NOT_SET_UP = ['3F000', '42P01', '42883'];

const UNREACHABLE = /^(?:ECONN|EHOST|ENET|ETIMEDOUT|ENOTFOUND|EAI_|EPIPE)/;

/** One line for an error of the database or of the way to it; never with the password that the address holds. */
export function describeDatabaseError(error: unknown, databaseUrl: string | undefined): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string') return firstLine(error.message);
  if (NOT_SET_UP.includes(code)) {
    return `the database is not set up for this version: run \`npm run release\` (${firstLine(error.message)})`;
  }
  if (/^[0-9A-Z]{5}$/.test(code)) return firstLine(error.message);
  if (!UNREACHABLE.test(code)) return firstLine(error.message);
  return `the database at ${hostOf(databaseUrl)} cannot be reached: ${firstLine(error.message) || code}`;
}

function hostOf(databaseUrl: string | undefined): string {
  return (databaseUrl !== undefined && URL.parse(databaseUrl)?.host) || 'DATABASE_URL';
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
