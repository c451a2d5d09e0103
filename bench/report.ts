/** Tables, goals and notes of a run, as Markdown. */

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** A goal and what was measured; `isMet` is undefined when something it needs was not measured. */
export interface Goal {
  readonly name: string;
  readonly required: string;
  readonly figure: string;
  readonly isMet: boolean | undefined;
}

export interface SectionReport {
  readonly tables: readonly Table[];
  readonly goals: readonly Goal[];
  readonly notes: readonly string[];
}

export const MISSING = '–';

/** A number with a fitting number of digits; a dash when there is none. */
export function format(value: number | undefined, unit = ''): string {
  if (value === undefined || !Number.isFinite(value)) return MISSING;
  const size = Math.abs(value);
  const text = size >= 100 ? Math.round(value).toLocaleString('en-US') : value.toFixed(size >= 10 ? 1 : 2);
  return unit === '' ? text : `${text} ${unit}`;
}

export function ratio(value: number | undefined, base: number | undefined): number | undefined {
  return value === undefined || base === undefined ? undefined : value / base;
}

export function difference(value: number | undefined, base: number | undefined): number | undefined {
  return value === undefined || base === undefined ? undefined : value - base;
}

export function atLeast(name: string, figure: number | undefined, minimum: number, unit = ''): Goal {
  return {
    name,
    required: `≥ ${format(minimum, unit)}`,
    figure: format(figure, unit),
    isMet: figure === undefined ? undefined : figure >= minimum,
  };
}

export function atMost(name: string, figure: number | undefined, maximum: number, unit = ''): Goal {
  return {
    name,
    required: `≤ ${format(maximum, unit)}`,
    figure: format(figure, unit),
    isMet: figure === undefined ? undefined : figure <= maximum,
  };
}

function renderRow(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

export function renderTable({ title, columns, rows }: Table): string {
  const lines = [renderRow(columns), renderRow(columns.map(() => '---')), ...rows.map(renderRow)];
  return `**${title}**\n\n${lines.join('\n')}`;
}

export function renderSection(title: string, section: SectionReport): string {
  const parts = [`## ${title}`, ...section.tables.map(renderTable), ...section.notes];
  return parts.join('\n\n');
}

const VERDICTS = new Map<boolean | undefined, string>([
  [true, 'met'],
  [false, '**not met**'],
  [undefined, 'not measured'],
]);

export function renderGoals(goals: readonly Goal[]): string {
  const rows = goals.map((goal) => [
    goal.name,
    goal.required,
    goal.figure,
    VERDICTS.get(goal.isMet) ?? MISSING,
  ]);
  const metCount = goals.filter((goal) => goal.isMet === true).length;
  const measuredCount = goals.filter((goal) => goal.isMet !== undefined).length;
  const title = `${metCount} of ${measuredCount} measured goals met`;
  return `## Goals\n\n${renderTable({ title, columns: ['goal', 'required', 'measured', ''], rows })}`;
}
