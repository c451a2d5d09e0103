/** What an upload is and how long it lasts, by its bytes; what is none of the kinds that are read is refused in the caller's words. */
import { AUDIO_FILE_TYPES, AudioError } from '../../../core/audio/audio-file.ts';
import { ServiceError } from '../../../core/errors.ts';
import type { Services } from '../../services.ts';

export async function measure(
  { audioMeter }: Pick<Services, 'audioMeter'>,
  bytes: Buffer,
  param: string,
): Promise<{ readonly contentType: string; readonly durationMs: number }> {
  try {
    return await audioMeter.measure(bytes);
  } catch (error) {
    if (!(error instanceof AudioError)) throw error;
    throw error.problem === 'not_audio' || error.problem === 'unsupported'
      ? new ServiceError('unsupported_format', { param, allowed: AUDIO_FILE_TYPES }, { cause: error })
      : new ServiceError('invalid_parameter', { param, reason: error.problem }, { cause: error });
  }
}
