/** Strings and numbers within a JSON schema's bounds. `salt` (a whole number in words, or nothing) gives different ones. */
import { sampleOfPattern } from './pattern.ts';

const MAX_STRING_CHARACTERS = 20_000;

type Schema = Readonly<Record<string, unknown>>;

const SAMPLES_BY_FORMAT: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T00:00:00Z',
  date: '2026-01-01',
  time: '00:00:00Z',
  duration: 'P1D',
  email: 'sandbox@example.com',
  'idn-email': 'sandbox@example.com',
  hostname: 'sandbox.example.com',
  'idn-hostname': 'sandbox.example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/sandbox',
  'uri-reference': '/sandbox',
  iri: 'https://example.com/sandbox',
  'iri-reference': '/sandbox',
  'uri-template': 'https://example.com/{sandbox}',
  url: 'https://example.com/sandbox',
  uuid: '00000000-0000-4000-8000-000000000000',
  regex: 'sandbox',
  'json-pointer': '/sandbox',
  'relative-json-pointer': '0',
};

/** `undefined` when a longer one is asked for than the sandbox makes. */
export function sampleString(schema: Schema, salt: string): string | undefined {
  const format = typeof schema.format === 'string' ? SAMPLES_BY_FORMAT[schema.format] : undefined;
  if (format !== undefined) return format;
  const least = integerOf(schema.minLength, 0);
  const most = integerOf(schema.maxLength, MAX_STRING_CHARACTERS);
  if (least > MAX_STRING_CHARACTERS) return undefined;
  if (typeof schema.pattern === 'string') return sampleOfPattern(schema.pattern, least, most);
  const text = `[sandbox] text${salt === '' ? '' : ` ${salt}`}`;
  if (salt !== '' && text.length > most) return salt.slice(-most);
  return text.padEnd(least, '.').slice(0, most);
}

/** Within the bounds and on the step; zero where it may be. */
export function sampleNumber(schema: Schema, isInteger: boolean, salt: string): number {
  const step =
    typeof schema.multipleOf === 'number' && schema.multipleOf > 0 ? schema.multipleOf : isInteger ? 1 : 0;
  const nudge = step === 0 ? 1e-6 : step;
  let low = numberOf(schema.minimum, Number.NEGATIVE_INFINITY);
  let high = numberOf(schema.maximum, Number.POSITIVE_INFINITY);
  const above = numberOf(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY);
  const below = numberOf(schema.exclusiveMaximum, Number.POSITIVE_INFINITY);
  if (above >= low)
    low =
      above +
      (step === 0 && Number.isFinite(Math.min(high, below)) ? (Math.min(high, below) - above) / 2 : nudge);
  if (below <= high) high = below - (step === 0 && Number.isFinite(low) ? (below - low) / 2 : nudge);
  const offset =
    (salt === '' ? 0 : Number(salt)) *
    (step === 0 ? Math.min(1, Number.isFinite(high - low) ? (high - low) / 1000 : 1) : step);
  let value =
    low > 0 || high < 0 || offset > 0
      ? Number.isFinite(low)
        ? low
        : Number.isFinite(high)
          ? high - offset
          : 0
      : 0;
  if (step !== 0) value = Math.ceil(value / step) * step;
  return value + (Number.isFinite(low) || !Number.isFinite(high) ? offset : 0);
}

function numberOf(value: unknown, fallback: number): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : fallback;
}

function integerOf(value: unknown, fallback: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : fallback;
}
