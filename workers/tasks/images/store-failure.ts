/** The files of a run, whose failures are told apart from those of providers, also where a provider meets them first. */
import { ServiceError } from '../../../core/errors.ts';
import type { Logger } from '../../../core/logger.ts';
import type { RunAssets } from '../../assets.ts';
import type { Run } from '../../run.ts';

/** A store that cannot be written to or read is no fault of the request: it may be made again. */
export function sayingWhatFailed(
  assets: RunAssets,
  { signal, id }: Run,
  logger: Logger,
): { assets: RunAssets; failure: () => ServiceError | undefined } {
  let failure: ServiceError | undefined;
  const noteFailure = (error: unknown): void => {
    if (signal.aborted || failure !== undefined) return;
    logger.error({ err: error, requestId: id }, 'the asset store failed');
    failure = new ServiceError('generation_failed', {}, { cause: error });
  };
  const failed = (error: unknown): never => {
    noteFailure(error);
    throw failure ?? error;
  };
  return {
    failure: () => failure,
    assets: {
      ...assets,
      put: (run, drafts) => assets.put(run, drafts).catch(failed),
      async openInput(run, input) {
        const file = await assets.openInput(run, input).catch(failed);
        return file.once('error', noteFailure);
      },
    },
  };
}
