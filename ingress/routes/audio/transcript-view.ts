/** A stored transcription in the format that was asked for: JSON of the convention, plain text, or subtitles (SubRip, WebVTT). */
import type { TranscriptionResult, TranscriptPart } from '../../../core/speech.ts';
import type { Context } from '../../context.ts';

const CONTENT_TYPES = {
  text: 'text/plain; charset=utf-8',
  srt: 'application/x-subrip; charset=utf-8',
  vtt: 'text/vtt; charset=utf-8',
} as const;

export function answerWithTranscript(ctx: Context, stored: string): void {
  const result = JSON.parse(stored) as TranscriptionResult;
  ctx.body = transcriptView(result);
  if (result.format !== 'json' && result.format !== 'verbose_json')
    ctx.set('Content-Type', CONTENT_TYPES[result.format]);
}

/** An object, or the text itself. */
export function transcriptView(result: TranscriptionResult): Record<string, unknown> | string {
  switch (result.format) {
    case 'text':
      return result.text;
    case 'srt':
      return cuesOf(result)
        .map(
          ({ start, end, text }, index) =>
            `${index + 1}\n${timeOf(start, ',')} --> ${timeOf(end, ',')}\n${text}\n`,
        )
        .join('\n');
    case 'vtt':
      return `WEBVTT\n\n${cuesOf(result)
        .map(({ start, end, text }) => `${timeOf(start, '.')} --> ${timeOf(end, '.')}\n${escaped(text)}\n`)
        .join('\n')}`;
    case 'json':
      return { text: result.text, model: result.model, usage: usageOf(result) };
    default:
      return verboseView(result);
  }
}

function verboseView(result: TranscriptionResult): Record<string, unknown> {
  const { text, model, language, durationMs, segments, words } = result;
  return {
    task: 'transcribe',
    text,
    model,
    language: language ?? 'unknown',
    duration: durationMs / 1000,
    ...(segments === null
      ? {}
      : { segments: segments.map(({ start, end, text: said }, id) => ({ id, start, end, text: said })) }),
    ...(words === null ? {} : { words: words.map(({ start, end, text: word }) => ({ word, start, end })) }),
    usage: usageOf(result),
  };
}

function usageOf({ durationMs }: TranscriptionResult): Record<string, unknown> {
  return { type: 'duration', seconds: durationMs / 1000 };
}

/** Of a provider that tells no times all of it is one cue. A blank line would end a cue before its text does. */
function cuesOf({ segments, text, durationMs }: TranscriptionResult): TranscriptPart[] {
  const parts = segments ?? [{ start: 0, end: durationMs / 1000, text }];
  return parts
    .map(({ start, end, text: said }) => ({ start, end, text: said.trim().replaceAll(/\s*\n\s*/g, '\n') }))
    .filter(({ text: said }) => said !== '');
}

/** WebVTT reads markup, and `-->` as the beginning of a cue. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** hh:mm:ss and milliseconds. */
function timeOf(seconds: number, separator: ',' | '.'): string {
  const totalMs = Math.max(0, Math.round(seconds * 1000));
  const whole = Math.floor(totalMs / 1000);
  const pad = (value: number, digits = 2): string => String(value).padStart(digits, '0');
  const clock = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return `${clock.map((value) => pad(value)).join(':')}${separator}${pad(totalMs % 1000, 3)}`;
}
