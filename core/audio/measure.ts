/**
 * What an audio file is and how long it really lasts, from all of its bytes: no name, header or time stamp is believed. Files
 * are taken apart in a thread, one at a time, within a time and a heap; the parsers are loaded there, by the first file.
 */
import { makeThread, type Thread } from '../thread.ts';
import { AUDIO_FILE_CONTENT_TYPES, AudioError, type AudioFileType, findAudioFile } from './audio-file.ts';
import type { MeasureAnswer } from './measure-thread.ts';

export interface MeasuredAudio {
  /** Also the ending of a file's name. */
  readonly type: AudioFileType;
  readonly contentType: string;
  /** At least 1. */
  readonly durationMs: number;
  /** Of the coded audio, in Hz. */
  readonly sampleRate: number;
}

/** 25 MB of the lowest bit rates there are last seven to nine hours. */
export const MAX_AUDIO_HOURS = 12;
/** 25 MB of the smallest packets take some seconds on a slow core. */
const TIMEOUT_MS = 30_000;
const MAX_HEAP_MB = 192;

export interface AudioMeter {
  /** Throws `AudioError`. */
  measure(bytes: Buffer): Promise<MeasuredAudio>;
  close(): Promise<void>;
}

export function makeAudioMeter({ timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {}): AudioMeter {
  const thread: Thread<Uint8Array, MeasureAnswer> = makeThread(
    new URL('./measure-thread.ts', import.meta.url),
    { timeoutMs, maxHeapMb: MAX_HEAP_MB },
  );
  return {
    async measure(bytes) {
      // Most of what is no audio at all is told at once.
      const { type } = findAudioFile(bytes);
      const answer = await thread.ask(bytes).catch((error: unknown): never => {
        throw new AudioError('too_long', error);
      });
      if ('problem' in answer) throw new AudioError(answer.problem);
      const durationMs = Math.round(answer.seconds * 1000);
      if (!(durationMs > 0)) throw new AudioError('damaged');
      if (durationMs > MAX_AUDIO_HOURS * 3_600_000) throw new AudioError('too_long');
      const contentType = AUDIO_FILE_CONTENT_TYPES[type];
      return { type, contentType, durationMs, sampleRate: answer.sampleRate };
    },
    close: () => thread.close(),
  };
}
