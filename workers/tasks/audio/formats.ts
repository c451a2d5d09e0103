/** Audio in the format that was asked for: as the provider makes it, or made over. */
import type { AudioFormat } from '../../../core/audio/formats.ts';
import { ServiceError } from '../../../core/errors.ts';
import type { SpeechCall, SpeechProvider } from '../../providers/provider.ts';

/** Throws `unsupported_format` where neither the provider nor this machine makes it. */
export function audioOf(
  provider: SpeechProvider,
  call: Omit<SpeechCall, 'format'>,
  format: AudioFormat,
): AsyncIterable<Buffer> {
  if (provider.formats.includes(format)) return provider.speak({ ...call, format });
  throw new ServiceError('unsupported_format', { param: 'response_format', allowed: provider.formats });
}
