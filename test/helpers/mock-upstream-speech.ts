/**
 * How the mock upstream speaks and transcribes, in the wire formats of both conventions: an MP3 of real frames, samples of a tone,
 * fifteen characters a second. Used only by the mock's other files.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { AUDIO_CONTENT_TYPES, type AudioFormat } from '../../core/audio/formats.ts';
import { PCM_BYTES_PER_SECOND, wavHeader } from '../../core/audio/pcm.ts';
import { transcode } from '../../core/audio/transcode.ts';
import { silentMp3, tonePcm } from './audio.ts';
import { type MockBehaviour, type MockCall, sendJson, write } from './mock-upstream-wire.ts';

export const SPEECH_PATH = /^\/v1\/(audio\/(speech|transcriptions)|text-to-speech\/)/;
const CHARACTERS_PER_SECOND = 15;
const MIN_SECONDS = 0.5;
const PIECES = 8;
export const MOCK_TRANSCRIPT = 'Hello from the mock. It heard you.';

export function isElevenLabs(path: string): boolean {
  return /^\/v1\/(text-to-speech|voices)/.test(path);
}

export async function answerSpeech(
  call: MockCall,
  response: ServerResponse,
  behaviour: MockBehaviour,
): Promise<void> {
  if (call.path.startsWith('/v1/audio/transcriptions')) return answerTranscription(call, response, behaviour);
  const format = formatOf(call);
  const pieces = behaviour.audio?.pieces ?? cut(await audioOf(format, secondsOf(call)));
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  // Cut: more was announced than comes.
  const isCut = behaviour.cutAfterChunks !== undefined;
  response.writeHead(200, {
    'content-type': behaviour.contentType ?? AUDIO_CONTENT_TYPES[format],
    ...(isCut ? { 'content-length': bytes + 1 } : {}),
    ...behaviour.headers,
  });
  for (let written = 0; ; written += 1) {
    if (behaviour.hang === written) return;
    if (behaviour.reset === written) return void response.socket?.resetAndDestroy();
    if (behaviour.cutAfterChunks === written) return void response.socket?.end();
    const piece = pieces[written];
    if (piece === undefined) break;
    if (written > 0 && behaviour.chunkSpacingMs !== undefined) await delay(behaviour.chunkSpacingMs);
    if (written > 0) await behaviour.chunkGate?.(written);
    await write(call, response, piece);
  }
  response.end();
}

/** The voices of `GET /v1/voices`. */
export const MOCK_VOICES = [
  { voice_id: 'mockvoice1', name: 'Ada', category: 'premade' },
  { voice_id: 'mockvoice2', name: 'Bea', category: 'cloned' },
];

function answerTranscription(call: MockCall, response: ServerResponse, behaviour: MockBehaviour): void {
  const text = behaviour.content ?? MOCK_TRANSCRIPT;
  const wanted = [call.body['timestamp_granularities[]']].flat();
  const words = text.split(/\s+/);
  const verbose = {
    task: 'transcribe',
    language: 'english',
    duration: words.length / 2,
    ...(wanted.includes('word')
      ? { words: words.map((word, index) => ({ word, start: index / 2, end: (index + 1) / 2 })) }
      : {}),
    ...(wanted.includes('segment')
      ? { segments: [{ id: 0, seek: 0, start: 0, end: words.length / 2, text, tokens: [1], temperature: 0 }] }
      : {}),
  };
  const isVerbose = call.body.response_format === 'verbose_json';
  sendJson(response, 200, { text, ...(isVerbose ? verbose : {}), ...behaviour.extra }, behaviour);
}

function formatOf({ path, body }: MockCall): AudioFormat {
  const asked = isElevenLabs(path)
    ? new URL(path, 'http://mock').searchParams.get('output_format')?.split('_')[0]
    : body.response_format;
  return (asked ?? 'mp3') as AudioFormat;
}

function secondsOf({ body }: MockCall): number {
  const text = String(body.input ?? body.text ?? '');
  const speed = Number(body.speed ?? (body.voice_settings as { speed?: number } | undefined)?.speed ?? 1);
  return Math.max(MIN_SECONDS, [...text].length / CHARACTERS_PER_SECOND / speed);
}

async function audioOf(format: AudioFormat, seconds: number): Promise<Buffer> {
  if (format === 'mp3') return silentMp3(seconds);
  const pcm = tonePcm(seconds);
  if (format === 'pcm') return pcm;
  if (format === 'wav') return Buffer.concat([wavHeader(pcm.length), pcm]);
  const parts: Buffer[] = [];
  const signal = AbortSignal.timeout(10_000);
  for await (const part of transcode(piecewise(pcm), format, { signal })) parts.push(part);
  return Buffer.concat(parts);
}

async function* piecewise(pcm: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < pcm.length; at += PCM_BYTES_PER_SECOND)
    yield pcm.subarray(at, at + PCM_BYTES_PER_SECOND);
}

function cut(audio: Buffer): Buffer[] {
  const size = Math.ceil(audio.length / PIECES);
  return Array.from({ length: Math.ceil(audio.length / size) }, (_, index) =>
    audio.subarray(index * size, (index + 1) * size),
  );
}
