/**
 * The sandbox's voices: English is spoken by a synthesiser, everything else is hummed, a note for each character. Either way a text
 * lasts exactly as long as its characters say.
 */
import { makeThread, type Thread } from '../../../core/thread.ts';
import { MARK_RATE } from './marks.ts';
import { fractionOf } from './random.ts';
import type { VoiceTask } from './voice-thread.ts';

/** A sentence takes a hundredth of a second; the first one loads the program. */
const THREAD_LIMITS = { timeoutMs: 10_000, maxHeapMb: 96 };
/** What it speaks by itself, about. */
const OWN_CHARACTERS_PER_SECOND = 16.5;
const STRETCH = { least: 0.2, most: 4 };
/** Further from the wanted length than this, and it speaks once more. */
const TOLERANCE = 0.1;
const FADE_SAMPLES = 480;
const PITCH = { lowestHz: 80, rangeHz: 150 };
/** Voices stay below the marks. */
const HIGHEST_HZ = 4400;
const HUM_LEVEL = 0.12;
const HARMONICS = 8;

let thread: Thread<VoiceTask, Float32Array> | undefined;

/** `text`: a sentence or so. `samples`: how long it has to last. */
export async function speakSentence(text: string, voice: string, samples: number): Promise<Float32Array> {
  const pitchHz = pitchOf(voice);
  const words = englishOf(text);
  if (words === undefined) return hum(text, pitchHz, samples);
  try {
    return fitted(await speak(words, pitchHz, samples), samples);
  } catch {
    // Something the synthesiser cannot take: it is heard all the same.
    return hum(text, pitchHz, samples);
  }
}

/** Each voice has its own pitch, the same each time. */
function pitchOf(voice: string): number {
  return Math.round(PITCH.lowestHz + PITCH.rangeHz * fractionOf(`voice ${voice}`));
}

async function speak(text: string, pitchHz: number, samples: number): Promise<Float32Array> {
  thread ??= makeThread(new URL('./voice-thread.ts', import.meta.url), THREAD_LIMITS);
  let stretch = clamped((samples / MARK_RATE) * (OWN_CHARACTERS_PER_SECOND / text.length));
  const first = await thread.ask({ text, pitchHz, stretch });
  if (first.length === 0) throw new Error('The synthesiser said nothing.');
  if (Math.abs(first.length / samples - 1) <= TOLERANCE) return first;
  stretch = clamped((stretch * samples) / first.length);
  return thread.ask({ text, pitchHz, stretch });
}

function clamped(stretch: number): number {
  return Math.min(Math.max(stretch, STRETCH.least), STRETCH.most);
}

/** With silence behind it, or faded out. */
function fitted(speech: Float32Array, samples: number): Float32Array {
  const result = new Float32Array(samples);
  result.set(speech.subarray(0, samples));
  if (speech.length <= samples) return result;
  for (let at = Math.max(0, samples - FADE_SAMPLES); at < samples; at += 1)
    result[at] = (result[at] ?? 0) * ((samples - at) / FADE_SAMPLES);
  return result;
}

/** The text as the synthesiser can read it; undefined where most of it is in other letters. */
function englishOf(text: string): string | undefined {
  const plain = text.normalize('NFKD').replace(/\p{M}/gu, '');
  const words = plain.replace(/[^A-Za-z0-9 .,;:!?'-]+/g, ' ').trim();
  const letters = plain.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  const readable = words.match(/[A-Za-z0-9]/g)?.length ?? 0;
  return readable > 0 && readable >= letters / 2 ? words : undefined;
}

function hum(text: string, pitchHz: number, samples: number): Float32Array {
  const result = new Float32Array(samples);
  const characters = [...text];
  for (const [index, character] of characters.entries()) {
    if (!/[\p{L}\p{N}\p{S}\p{M}]/u.test(character)) continue;
    const start = Math.floor((index * samples) / characters.length);
    const end = Math.floor(((index + 1) * samples) / characters.length);
    const noteHz = pitchHz * 2 ** (((character.codePointAt(0) ?? 0) % 12) / 12);
    for (let at = start; at < end; at += 1) {
      const time = at / MARK_RATE;
      const envelope = Math.sin((Math.PI * (at - start + 0.5)) / (end - start)) * HUM_LEVEL;
      for (let harmonic = 1; harmonic <= HARMONICS && harmonic * noteHz < HIGHEST_HZ; harmonic += 1)
        result[at] =
          (result[at] ?? 0) + (envelope / harmonic) * Math.sin(2 * Math.PI * harmonic * noteHz * time);
    }
  }
  return result;
}
