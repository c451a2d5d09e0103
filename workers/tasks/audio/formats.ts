/** Audio in the format that was asked for: as the provider makes it, or made over from the bare samples it can give. */
import type { AudioFormat } from '../../../core/audio/formats.ts';
import { transcode } from '../../../core/audio/transcode.ts';
import { ServiceError } from '../../../core/errors.ts';
import type { SpeechCall, SpeechProvider } from '../../providers/provider.ts';

/** Throws `unsupported_format` where neither the provider nor this service makes it. */
export function audioOf(
  provider: SpeechProvider,
  call: Omit<SpeechCall, 'format'>,
  format: AudioFormat,
): AsyncIterable<Buffer> {
  if (provider.formats.includes(format)) return provider.speak({ ...call, format });
  if (provider.formats.includes('pcm')) {
    return transcode(provider.speak({ ...call, format: 'pcm' }), format, { signal: call.signal });
  }
  throw new ServiceError('unsupported_format', { param: 'response_format', allowed: provider.formats });
}
