/** The length of audio as its parts add up, and how much of what its header says is believed. */

export interface Measured {
  readonly seconds: number;
  /** Of the coded audio, in Hz. */
  readonly sampleRate: number;
}

/** Silence that encoders put in front and behind, and that decoders are told to leave out: a few frames of any codec. */
const MAX_TRIMMED_SAMPLES = 8192;

/**
 * `parts`: all parts of the audio, added up; `claimed`: what the header says. The claim is believed where it only leaves out
 * what an encoder had to add, so that ten seconds of speech are ten seconds and no lie gains more than a fraction of one.
 */
export function trimmed(parts: Measured, claimed: number | undefined): Measured {
  const { seconds, sampleRate } = parts;
  if (claimed === undefined || !(claimed > 0) || claimed > seconds) return parts;
  return seconds - claimed <= MAX_TRIMMED_SAMPLES / sampleRate ? { seconds: claimed, sampleRate } : parts;
}
