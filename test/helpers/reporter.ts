/**
 * Mocha's spec reporter, and besides, when MOCHA_REPORT_FILE is set, the true counts of the run as JSON:
 * `{passed, failed, pending}`. `.ci/run` prints them; a run that dies before its end leaves no file.
 */
import { writeFileSync } from 'node:fs';
import Mocha from 'mocha';

export default class CountingSpecReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options?: Mocha.MochaOptions) {
    super(runner, options);
    const file = process.env.MOCHA_REPORT_FILE;
    if (file === undefined || file === '') return;
    runner.once('end', () => {
      const { passes: passed, failures: failed, pending } = this.stats;
      writeFileSync(file, `${JSON.stringify({ passed, failed, pending })}\n`);
    });
  }
}
