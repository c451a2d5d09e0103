/**
 * Files that callers send along: they are put before the request is submitted, and ride in its job by their names. What was put
 * for a request that is not accepted is taken back at once; after that it is the task's, and housekeeping's.
 */
import { ServiceError } from '../core/errors.ts';
import { type Context, callerOf } from './context.ts';
import { type PaidRequest, runPaid } from './paid.ts';
import type { Services } from './services.ts';

export interface Input {
  readonly bytes: Buffer;
  readonly contentType: string;
}

/** As it rides in the job. */
export interface StoredInput {
  readonly id: string;
  readonly contentType: string;
  readonly byteLength: number;
}

/** A caller whose files could not be kept tries again after this. */
const STORE_PAUSE_SECONDS = 5;

/** In their order. */
export async function storeInputs(
  ctx: Context,
  { files, logger }: Pick<Services, 'files' | 'logger'>,
  inputs: readonly Input[],
): Promise<readonly StoredInput[]> {
  if (inputs.length === 0) return [];
  const { requestId } = ctx.state;
  const drafts = inputs.map(({ bytes, contentType }, position) => ({
    kind: 'input' as const,
    position,
    contentType,
    body: bytes,
    maxBytes: bytes.length,
  }));
  const stored = await files
    .put({ accountId: callerOf(ctx).accountId, requestId }, drafts)
    .catch((error: unknown) => {
      logger.error({ err: error, requestId }, 'the asset store failed');
      throw new ServiceError(
        'generation_failed',
        {},
        { cause: error, retryAfterSeconds: STORE_PAUSE_SECONDS },
      );
    });
  return stored.map(({ id, contentType, bytes }) => ({ id, contentType, byteLength: bytes }));
}

/** The common paid path, with files. */
export async function runPaidWithInputs(
  ctx: Context,
  services: Services,
  request: PaidRequest,
  inputs: readonly StoredInput[],
): Promise<void> {
  const ids = inputs.map(({ id }) => id);
  let isAccepted = false;
  try {
    await runPaid(ctx, services, request, (outcome) => {
      isAccepted = outcome === 'accepted';
      if (!isAccepted) void services.files.discard(ids);
    });
  } catch (error) {
    // housekeeping finds what a request that was accepted leaves
    if (!isAccepted) await services.files.discard(ids);
    throw error;
  }
}
