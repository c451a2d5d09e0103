/**
 * The sandbox's transcription: recognises what the sandbox itself spoke, from the audio alone, and says of any other audio that it
 * does not know. Times are those at which the sandbox speaks: so many characters a second.
 */
import { makeThread, type Thread } from '../../../core/thread.ts';
import {
  ProviderError,
  type Transcript,
  type TranscriptionCall,
  type TranscriptionProvider,
} from '../provider.ts';
import { directedError, parseDirectives } from './directives.ts';
import type { Heard } from './listen-thread.ts';
import type { ReadPiece } from './marks-reader.ts';
import { pause } from './pause.ts';

/** Half an hour of speech takes some ten seconds on a slow core. */
const THREAD_LIMITS = { timeoutMs: 60_000, maxHeapMb: 192 };
/** In place of what was not heard. */
const GAP = '…';

let thread: Thread<Uint8Array, Heard> | undefined;

export const sandboxTranscription: TranscriptionProvider = {
  async transcribe(call) {
    call.signal.throwIfAborted();
    // What is said in the prompt directs it, as what is to be spoken directs the speech.
    const directives = parseDirectives(call.prompt ?? '', 'prompt');
    if (directives.delayMs > 0) await pause(directives.delayMs, call.signal);
    if (directives.error !== undefined) throw directedError(directives.error);
    const { pieces, seconds } = await heard(call);
    const text = textOf(pieces);
    if (text === '') return unknownWords(seconds);
    return {
      text,
      segments: call.wantsSegments ? segmentsOf(text, seconds) : undefined,
      words: call.wantsWords ? wordsOf(text, seconds) : undefined,
    };
  },
};

async function heard({ audio, signal }: TranscriptionCall): Promise<Heard> {
  thread ??= makeThread(new URL('./listen-thread.ts', import.meta.url), THREAD_LIMITS);
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([thread.ask(audio), aborted.promise]);
  } catch (error) {
    signal.throwIfAborted();
    throw new ProviderError('unavailable', 'The sandbox could not listen to the audio.', { cause: error });
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Pieces come again and again; a number that comes with other words begins another text. */
function textOf(pieces: readonly ReadPiece[]): string {
  const texts: Map<number, ReadPiece>[] = [];
  for (const piece of pieces) {
    const current = texts.at(-1);
    const known = current?.get(piece.number);
    if (
      current === undefined ||
      (known !== undefined && !known.payload.every((byte, at) => byte === piece.payload[at]))
    )
      texts.push(new Map([[piece.number, piece]]));
    else current.set(piece.number, piece);
  }
  return texts.map(joined).join(' ');
}

function joined(pieces: ReadonlyMap<number, ReadPiece>): string {
  const count = Math.max(...pieces.keys()) + 1;
  let text = '';
  for (let number = 0; number < count; ) {
    const run: Uint8Array[] = [];
    let isUtf16 = false;
    for (let piece = pieces.get(number); piece !== undefined; piece = pieces.get(number)) {
      run.push(piece.payload);
      isUtf16 = piece.isUtf16;
      number += 1;
    }
    text += Buffer.concat(run).toString(isUtf16 ? 'utf16le' : 'utf8');
    if (number >= count) break;
    text += GAP;
    while (number < count && !pieces.has(number)) number += 1;
  }
  return text;
}

function unknownWords(seconds: number): Transcript {
  const length = seconds > 0 ? `${seconds.toFixed(1)} seconds of audio` : 'this audio';
  return { text: `[sandbox] Nothing that the sandbox said was recognised in ${length}.` };
}

function segmentsOf(text: string, seconds: number): NonNullable<Transcript['segments']> {
  const sentences = text.match(/[\s\S]+?(?:[.!?]+\s+|[。！？\n]+|$)/gu) ?? [];
  return timed(sentences, text, seconds).map((part, id) => ({ id, ...part }));
}

function wordsOf(text: string, seconds: number): NonNullable<Transcript['words']> {
  const words = text.match(/\S+\s*/gu) ?? [];
  return timed(words, text, seconds).map(({ start, end, text: word }) => ({
    word: word.replace(/[\s.,;:!?]+$/u, '') || word.trim(),
    start,
    end,
  }));
}

function timed(
  parts: readonly string[],
  text: string,
  seconds: number,
): { start: number; end: number; text: string }[] {
  const perCharacter = seconds / [...text].length;
  let start = 0;
  return parts.map((part) => {
    const end = start + [...part].length * perCharacter;
    const times = { start: rounded(start), end: rounded(end), text: part };
    start = end;
    return times;
  });
}

function rounded(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
