/** The wire form of a speech call: what stands in the path, in the query and in the body. */
import type { AudioFormat } from '../../../core/audio/formats.ts';
import { ProviderError, type SpeechCall } from '../provider.ts';
import { refuseUnknown } from '../speech-options.ts';

/** Of its many, the best that every subscription has. */
const OUTPUT_FORMATS: Partial<Readonly<Record<AudioFormat, string>>> = {
  mp3: 'mp3_44100_128',
  pcm: 'pcm_24000',
};
const QUERY_OPTIONS: ReadonlySet<string> = new Set(['enable_logging', 'optimize_streaming_latency']);
const BODY_OPTIONS: ReadonlySet<string> = new Set([
  'apply_language_text_normalization',
  'apply_text_normalization',
  'language_code',
  'next_request_ids',
  'next_text',
  'previous_request_ids',
  'previous_text',
  'pronunciation_dictionary_locators',
  'seed',
  'use_pvc_as_ivc',
  'voice_settings',
]);

export function speechRequest(call: SpeechCall): { path: string; accept: string; body: string } {
  const outputFormat = OUTPUT_FORMATS[call.format];
  if (outputFormat === undefined)
    throw new ProviderError('misconfigured', `The provider does not make ${call.format}.`);
  refuseUnknown(call.options, new Set([...QUERY_OPTIONS, ...BODY_OPTIONS]));
  const query = new URLSearchParams({ output_format: outputFormat });
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(call.options)) {
    if (value === undefined) continue;
    if (QUERY_OPTIONS.has(name)) query.set(name, `${value}`);
    else fields[name] = value;
  }
  if (call.speed !== undefined)
    fields.voice_settings = { ...(fields.voice_settings as object | undefined), speed: call.speed };
  return {
    path: `/text-to-speech/${encodeURIComponent(call.upstreamVoice)}/stream?${query}`,
    accept: call.format === 'mp3' ? 'audio/mpeg' : '*/*',
    body: JSON.stringify({ ...fields, text: call.text, model_id: call.upstreamModel }),
  };
}
