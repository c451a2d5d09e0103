/**
 * What the speech routes and the speech tasks say to each other: jobs' inputs, stored results, the events that carry audio. None
 * of them holds a whole file: audio is an asset (core/assets), named here by its id.
 */
import type { AudioFormat } from './audio/formats.ts';

/** The tasks' queue names and paths. */
export const SPEECH_TASK = 'audio/speak';
export const TRANSCRIPTION_TASK = 'audio/transcribe';

/** The models of the second path family: two words that clients send as they are. */
export const EL_MODELS = ['tts_multilingual_v2', 'tts_v3'] as const;
/** Of these the one that reads `[whispers]` aloud instead of whispering. */
const WITHOUT_TAGS: string = EL_MODELS[0];

/** A stretch of audio in one event: 24 KiB are 32 KiB as base64. */
export const AUDIO_EVENT_BYTES = 24 * 1024;
/** Of one file: an hour and a half of uncompressed speech. */
export const MAX_SPEECH_BYTES = 256 * 1024 * 1024;

/** What the speech routes hand to the task. */
export interface SpeechJobInput {
  /** Made with a `svc_test_` key: always the sandbox. */
  readonly isTest: boolean;
  readonly costAp: number;
  readonly characters: number;
  readonly text: string;
  /** As callers name it. */
  readonly voice: string;
  /** Only this one knows the voice. */
  readonly provider: string;
  readonly upstreamVoice: string;
  readonly format: AudioFormat;
  readonly speed: number | null;
  /** Of the second family and `instructions`: as the caller sent them, validated. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Hexadecimal. */
  readonly cacheKey: string;
}

/** What a file's row says of it (app.assets.details): enough to give the answer again when its JSON is gone. */
export interface SpeechDetails {
  readonly voice: string;
  readonly characters: number;
}

/** A speech as it is stored (app.request_results). */
export interface SpeechResult {
  /** The asset's id. */
  readonly asset: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly model: string;
  readonly voice: string;
  readonly characters: number;
  readonly costAp: number;
}

/** A stretch of the file, while it is made. */
export interface AudioEvent {
  /** Of its first byte in the file. */
  readonly offset: number;
  /** Base64. */
  readonly data: string;
}

export const TRANSCRIPT_FORMATS = ['json', 'text', 'srt', 'vtt', 'verbose_json'] as const;
export type TranscriptFormat = (typeof TRANSCRIPT_FORMATS)[number];

/** What the transcription route hands to the task. */
export interface TranscriptionJobInput {
  readonly isTest: boolean;
  readonly costAp: number;
  readonly durationMs: number;
  /** The caller's file: an asset of kind `input`, kept until the request has ended. */
  readonly audio: { readonly id: string; readonly contentType: string; readonly byteLength: number };
  readonly format: TranscriptFormat;
  readonly language: string | null;
  readonly prompt: string | null;
  readonly temperature: number | null;
  readonly wantsSegments: boolean;
  readonly wantsWords: boolean;
}

/** Times are seconds from the start of the audio. */
export interface TranscriptPart {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A transcription as it is stored; the ingress turns it into the format that was asked for. */
export interface TranscriptionResult {
  readonly model: string;
  readonly format: TranscriptFormat;
  readonly text: string;
  readonly language: string | null;
  readonly durationMs: number;
  readonly segments: readonly TranscriptPart[] | null;
  readonly words: readonly TranscriptPart[] | null;
  readonly costAp: number;
}

/** What is billed: Unicode code points, whatever they look like together. */
export function charactersOf(text: string): number {
  let count = 0;
  for (const _character of text) count += 1;
  return count;
}

const EXPRESSION_TAG = /\[[a-z][a-z ,'’-]{0,63}\]/i;

/** Whether a text has tags (`[whispers]`) that this model would read aloud. */
export function hasUnreadableTag(modelId: string, text: string): boolean {
  return modelId === WITHOUT_TAGS && EXPRESSION_TAG.test(text);
}

/** Started stretches of ten seconds, at least one. */
export function startedTenSeconds(durationMs: number): number {
  return Math.max(1, Math.ceil(durationMs / 10_000));
}
