/**
 * Files that callers send along: they are put before the request is submitted, and ride in its job by their names. What was put
 * for a request that is not accepted is taken back at once; after that it is the task's, and housekeeping's.
 */
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
}

/** In their order. */
export async function storeInputs(
  ctx: Context,
  { files }: Pick<Services, 'files'>,
  inputs: readonly Input[],
): Promise<readonly StoredInput[]> {
  if (inputs.length === 0) return [];
  const stored = await files.put(
    { accountId: callerOf(ctx).accountId, requestId: ctx.state.requestId },
    inputs.map(({ bytes, contentType }, position) => ({
      kind: 'input',
      position,
      contentType,
      body: bytes,
      maxBytes: bytes.length,
    })),
  );
  return stored.map(({ id, contentType }) => ({ id, contentType }));
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
