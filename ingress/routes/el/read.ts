/** What the routes of the second family that speak have in common: their options and formats, into what every speech is made of. */
import type { AudioFormat } from '../../../core/audio/formats.ts';
import { ServiceError } from '../../../core/errors.ts';
import type { ElOptions } from '../../schemas/audio.ts';

/** Of the convention's many: its default, and those that are the same whoever makes them. */
const OUTPUT_FORMATS: Readonly<Record<string, AudioFormat>> = {
  mp3_44100_128: 'mp3',
  pcm_24000: 'pcm',
  wav_24000: 'wav',
};
const ALLOWED = Object.keys(OUTPUT_FORMATS);

export function requireOutputFormat(asked: string | null | undefined): AudioFormat {
  const format = Object.hasOwn(OUTPUT_FORMATS, asked ?? '') ? OUTPUT_FORMATS[asked ?? ''] : undefined;
  if (format !== undefined) return format;
  if (asked == null || asked === '') return 'mp3';
  throw new ServiceError('unsupported_format', { param: 'output_format', allowed: ALLOWED });
}

/** Those that were given a value. */
export function optionsOf({
  language_code,
  voice_settings,
  seed,
  previous_text,
  next_text,
  apply_text_normalization,
  apply_language_text_normalization,
}: ElOptions): Record<string, unknown> {
  return present({
    language_code,
    voice_settings: voice_settings == null ? null : present(voice_settings),
    seed,
    previous_text,
    next_text,
    apply_text_normalization,
    apply_language_text_normalization,
  });
}

function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));
}
