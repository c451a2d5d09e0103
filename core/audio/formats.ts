/** The formats speech is given in: their names in a request and their content types. Does not look into bytes. */

export const AUDIO_FORMATS = ['mp3', 'wav', 'opus', 'flac', 'aac', 'pcm'] as const;

export type AudioFormat = (typeof AUDIO_FORMATS)[number];

/** `opus` comes in Ogg; `aac` as ADTS frames; `pcm` bare: signed 16-bit little-endian, mono, 24 kHz, as the OpenAI convention has it. */
export const AUDIO_CONTENT_TYPES: Readonly<Record<AudioFormat, string>> = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  opus: 'audio/ogg',
  flac: 'audio/flac',
  aac: 'audio/aac',
  pcm: 'audio/pcm',
};
