/**
 * What a paid task is: the part of a request's life that is particular to its area. Everything else is the executor's.
 */
import type { ErrorCode, ErrorDetails } from '../core/errors.ts';
import type { PaidJobPayload } from '../core/jobs.ts';
import type { Run } from './run.ts';

export type Outcome =
  | {
      readonly kind: 'succeeded';
      readonly costAp: number;
      readonly usage: Readonly<Record<string, unknown>>;
      readonly provider: string;
      /** The JSON body; a stream's events stand in the run instead. */
      readonly body?: string;
      /** Events that go out only once the request is on the books. */
      readonly lastEvents?: readonly string[];
    }
  | {
      readonly kind: 'failed';
      readonly code: ErrorCode;
      readonly details?: ErrorDetails;
      readonly provider?: string;
    }
  /** Stopped at the caller's doing, or by a limit of ours after the caller got a part: what was produced is charged. */
  | {
      readonly kind: 'cancelled';
      readonly costAp: number;
      readonly usage?: Readonly<Record<string, unknown>>;
      readonly provider?: string;
    };

export interface PaidTask<Input> {
  /** The queue's name for it; also its path under tasks/. */
  readonly name: string;
  /** Whether a request whose worker died may be run again although its provider call may have begun. */
  mayRepeat(payload: PaidJobPayload<Input>): boolean;
  /** Throws ProviderError for what a provider did, and whatever `run.signal` was aborted with. */
  perform(run: Run, input: Input): Promise<Outcome>;
}
