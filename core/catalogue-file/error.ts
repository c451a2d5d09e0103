/** A catalogue file that is refused; apart from the rest so that naming it costs a command nothing. */

/** More than a person reads at once. */
const MAX_PROBLEMS = 100;

export class CatalogueFileError extends Error {
  /** One line each, in the order of the file. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[], options?: ErrorOptions) {
    const left = problems.length - MAX_PROBLEMS;
    const shown =
      left > 0 ? [...problems.slice(0, MAX_PROBLEMS), `and ${left} more problems`] : [...problems];
    super(shown.join('\n'), options);
    this.name = 'CatalogueFileError';
    this.problems = shown;
  }
}
