/** Dates as people write them in files and on the command line: ISO 8601, and never in a zone that has to be guessed. */

const ISO_TIME =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.(\d{1,6}))?)?(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d))?$/;

export const ISO_TIME_HINT = 'an ISO 8601 date (2027-01-31) or time with its zone (2027-01-31T09:00:00Z)';

/** The moment a text names; a date alone is its first moment in UTC. Undefined where it names none. */
export function parseIsoTime(text: string): Date | undefined {
  const microseconds = isoMicroseconds(text);
  return microseconds === undefined ? undefined : new Date(Math.floor(microseconds / 1000));
}

/** The same in microseconds since 1970, which is how finely the database keeps time. */
export function isoMicroseconds(text: string): number | undefined {
  const match = ISO_TIME.exec(text);
  if (match === null) return undefined;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const daysInMonth = new Date(Date.UTC(year, month, 0)).getUTCDate();
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > daysInMonth) return undefined;
  const wholeSeconds = Date.parse(text.replace(' ', 'T').replace(/\.\d+/, ''));
  return wholeSeconds * 1000 + Number((match[4] ?? '').padEnd(6, '0'));
}
