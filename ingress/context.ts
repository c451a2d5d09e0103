/**
 * What middleware leaves on a request for the handlers behind it.
 */
import type { ParameterizedContext } from 'koa';
import type { Language } from '../core/errors.ts';
import type { Caller } from './key-cache.ts';

/** How a key stands within its minute. */
export interface RateState {
  readonly isAllowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

export interface State {
  /** Answered as `x-svc-request-id`; a paid request's id on the books. */
  requestId: string;
  language: Language;
  /** Set by `authenticate`. */
  caller?: Caller;
  /** Set by `countRate`. */
  rate?: RateState;
}

export type Context = ParameterizedContext<State>;
export type Handler = (ctx: Context) => Promise<void> | void;
export type Middleware = (ctx: Context, next: () => Promise<unknown>) => Promise<void> | void;

/** The caller, on a route behind `authenticate`. */
export function callerOf(ctx: Context): Caller {
  const { caller } = ctx.state;
  if (caller === undefined) throw new Error('this route is not behind authenticate');
  return caller;
}
