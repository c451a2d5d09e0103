/** What an upload is and how long it lasts, by its bytes; what is none of the kinds that are read is refused in the caller's words. */
import { AudioError, measureAudio } from '../../../core/audio/measure.ts';
import { ServiceError } from '../../../core/errors.ts';

const ALLOWED = ['mp3', 'mp4', 'm4a', 'wav', 'webm', 'ogg', 'flac'];

export async function measure(
  bytes: Buffer,
  param: string,
): Promise<{ readonly contentType: string; readonly durationMs: number }> {
  try {
    return await measureAudio(bytes);
  } catch (error) {
    if (!(error instanceof AudioError)) throw error;
    throw error.problem === 'unsupported_format'
      ? new ServiceError('unsupported_format', { param, allowed: ALLOWED }, { cause: error })
      : new ServiceError('invalid_parameter', { param, reason: error.problem }, { cause: error });
  }
}
