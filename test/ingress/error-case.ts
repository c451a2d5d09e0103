/** A refusal over HTTP: how it is provoked, and what belongs to it. Run by errors.test.ts. */
import type { ErrorCode } from '../../core/errors.ts';
import type { Answer, CallerOptions, CallOptions, TestService } from '../helpers/service.ts';

/** What a case prepares: the refused call itself, its siblings, and what is to be undone. */
export interface Prepared {
  readonly call: (options: CallOptions) => Promise<Answer>;
  readonly siblings?: object | ((answer: Answer) => object);
  readonly release?: () => Promise<unknown>;
}

export interface Case {
  readonly code: ErrorCode;
  readonly when: string;
  readonly given: (service: TestService, as: CallerOptions) => Promise<Prepared> | Prepared;
  /** Not the catalogue's. */
  readonly status?: number;
  /** The key is not known, so the account's language is not either. */
  readonly isStranger?: true;
  /** The request was accepted and failed later: a row tells of it, and nothing else. */
  readonly leavesFailedRequest?: true;
  /** Bounds of Retry-After; none: the header must be absent. */
  readonly retryAfter?: readonly [number, number];
  /** Error lines the service logs for it. */
  readonly logs?: true;
}
