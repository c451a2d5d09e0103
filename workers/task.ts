/**
 * What a paid task is: the part of a request's life that is particular to its area. Everything else is the executor's.
 */
import type { AssetFile } from '../core/assets/files.ts';
import type { ErrorCode, ErrorDetails } from '../core/errors.ts';
import type { PaidJobPayload } from '../core/jobs.ts';
import type { Run } from './run.ts';

export type Outcome =
  | {
      readonly kind: 'succeeded';
      readonly costAp: number;
      readonly usage: Readonly<Record<string, unknown>>;
      readonly provider: string;
      /** The JSON body; a stream's events stand in the run instead, unless they are not stored. */
      readonly body?: string;
      /** Events that go out only once the request is on the books. */
      readonly lastEvents?: readonly string[];
      /** Files that were put for it (workers/assets.ts): shown to callers from the moment it is on the books. */
      readonly assets?: readonly AssetFile[];
      /** SHA-256, hexadecimal, of all that makes the result: the same again is free. Only together with `assets`. */
      readonly cacheKey?: string;
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
      /** Those that are charged. */
      readonly assets?: readonly AssetFile[];
    };

export interface PaidTask<Input> {
  /** The queue's name for it; also its path under tasks/. */
  readonly name: string;
  /** The ingress may have put files for it (kind `input`), which go when the request has ended. */
  readonly hasInputFiles?: boolean;
  /** Whether a request whose worker died may be run again although its provider call may have begun. */
  mayRepeat(payload: PaidJobPayload<Input>): boolean;
  /** Results are fetched by id afterwards: a stream is made to its end also when nobody is left to read it. */
  readonly isCollected?: boolean;
  /**
   * False: a stream's events carry a file, which is stored by itself. The outcome has a `body` that names it, and what was lost of
   * the events is read from it.
   */
  readonly storesEvents?: boolean;
  /** Throws ProviderError for what a provider did, and whatever `run.signal` was aborted with. */
  perform(run: Run, input: Input): Promise<Outcome>;
}
