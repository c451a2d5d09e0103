/**
 * The sandbox's speech: audible, fifteen characters a second, in a voice for each name, produced sentence by sentence while it is sent.
 * Marks in it carry the text, so that the sandbox's transcription can recognise what was said. See docs/sandbox.md.
 */
import { PCM_BYTES_PER_SAMPLE, PCM_RATE } from '../../../core/audio/pcm.ts';
import { transcode } from '../../../core/audio/transcode.ts';
import type { SpeechCall, SpeechProvider } from '../provider.ts';
import { cutError, directedError, parseDirectives } from './directives.ts';
import { Marks } from './marks.ts';
import { pause } from './pause.ts';
import { speakSentence } from './voice.ts';

const CHARACTERS_PER_SECOND = 15;
/** As players and people need it; also what the marks of the shortest text take. */
const MIN_SAMPLES = PCM_RATE * 0.5;
const SPEED = { least: 0.25, most: 4 };
/** Of one sentence, or part of one: the first audio comes when it is done. */
const MAX_SENTENCE_CHARACTERS = 100;
/** Between sentences: enough to see that it streams, little enough for tests. */
const SENTENCE_SPACING_MS = 3;
/** Given on at once: a fifth of a second. */
const STEP_SAMPLES = PCM_RATE / 5;

export const sandboxSpeech: SpeechProvider = {
  formats: ['mp3', 'wav', 'pcm'],
  async *speak(call) {
    call.signal.throwIfAborted();
    const directives = parseDirectives(call.text, 'input');
    if (directives.delayMs > 0) await pause(directives.delayMs, call.signal);
    if (directives.error !== undefined) throw directedError(directives.error);
    const speech = planOf(directives.text, speedOf(call));
    const pcmBytes = speech.totalSamples * PCM_BYTES_PER_SAMPLE;
    const pcm = spoken(speech, call, directives.cut);
    yield* transcode(pcm, call.format, { signal: call.signal, pcmBytes });
  },
};

interface Plan {
  readonly text: string;
  /** Each up to where it lasts, in samples from the beginning. */
  readonly sentences: readonly { readonly text: string; readonly end: number }[];
  readonly totalSamples: number;
}

function planOf(text: string, speed: number): Plan {
  const samplesPerCharacter = PCM_RATE / CHARACTERS_PER_SECOND / speed;
  let characters = 0;
  const sentences = sentencesOf(text).map((sentence) => {
    characters += [...sentence].length;
    return { text: sentence, end: Math.round(characters * samplesPerCharacter) };
  });
  const last = sentences.at(-1);
  const totalSamples = Math.max(last?.end ?? 0, MIN_SAMPLES);
  return {
    text,
    sentences: [...sentences.slice(0, -1), { text: last?.text ?? '', end: totalSamples }],
    totalSamples,
  };
}

/** All of the text, cut behind what ends a sentence or, where that is far, behind a space. */
function sentencesOf(text: string): string[] {
  const pattern = new RegExp(
    `[\\s\\S]{1,${MAX_SENTENCE_CHARACTERS}}?(?:[.!?]+\\s+|[。！？\\n]+|$)|[\\s\\S]{1,${MAX_SENTENCE_CHARACTERS - 1}}\\s|[\\s\\S]{1,${MAX_SENTENCE_CHARACTERS}}`,
    'gu',
  );
  return text.match(pattern) ?? [];
}

async function* spoken(
  { text, sentences, totalSamples }: Plan,
  call: SpeechCall,
  isCut: boolean,
): AsyncGenerator<Buffer, void, undefined> {
  const marks = new Marks(text, totalSamples);
  let start = 0;
  for (const sentence of sentences) {
    if (start > 0) await pause(SENTENCE_SPACING_MS, call.signal);
    const speech = await speakSentence(sentence.text, call.upstreamVoice, sentence.end - start);
    call.signal.throwIfAborted();
    marks.addTo(speech, start);
    for (let at = 0; at < speech.length; at += STEP_SAMPLES) {
      if (isCut && (start + at) * 2 >= totalSamples) throw cutError();
      yield samplesOf(speech.subarray(at, at + STEP_SAMPLES));
    }
    start = sentence.end;
  }
}

function samplesOf(speech: Float32Array): Buffer {
  const pcm = Buffer.alloc(speech.length * PCM_BYTES_PER_SAMPLE);
  for (const [index, value] of speech.entries())
    pcm.writeInt16LE(Math.round(Math.max(-1, Math.min(1, value)) * 32_767), index * PCM_BYTES_PER_SAMPLE);
  return pcm;
}

/** The one of the second family stands among the voice's settings. */
function speedOf({ speed, options }: SpeechCall): number {
  const settings = options.voice_settings as { readonly speed?: unknown } | null | undefined;
  const wanted = speed ?? (typeof settings?.speed === 'number' ? settings.speed : 1);
  return Math.min(Math.max(wanted, SPEED.least), SPEED.most);
}
