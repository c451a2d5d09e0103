/** A failure that a command foresees: its message is the line that the person at the command line reads. */
export class Failure extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Failure';
  }
}

/** What a command came to: the object for `--json`, and the same for a person. */
export interface Outcome {
  readonly json: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** Lines for stderr that belong to a success. */
  readonly notes?: readonly string[];
  /** The command worked, and what it looked at is not in order. */
  readonly isProblem?: boolean;
}
