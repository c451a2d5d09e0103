/** The sandbox's voice, and its ear: what it says is heard, lasts as long as it should, and is recognised from the audio. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type { AudioFormat } from '../../../core/audio/formats.ts';
import { PCM_RATE } from '../../../core/audio/pcm.ts';
import { transcode } from '../../../core/audio/transcode.ts';
import { makeProvider } from '../../../workers/providers/index.ts';
import type { ProviderError, SpeechCall } from '../../../workers/providers/provider.ts';
import { collected, decoded, ffmpeg, strengthOf, toneWav } from '../../helpers/audio.ts';
import { failureOf } from './conformance.ts';
import { speechCall } from './conformance-speech.ts';
import { transcriptionCall } from './conformance-transcription.ts';

const { speech, transcription } = makeProvider({
  name: 'sandbox',
  kind: 'sandbox',
  baseUrl: undefined,
  credential: undefined,
});
if (speech === undefined || transcription === undefined) throw new Error('The sandbox is not whole.');
const { speak } = speech;
const { transcribe } = transcription;
const signal = new AbortController().signal;

const ENGLISH = 'The quick brown fox jumps over the lazy dog. Was it worth the trouble? Nobody knows.';
const JAPANESE = 'これはサンドボックスの声です。今日はいい天気ですね。散歩に行きましょう。';

/** In the formats it makes itself, else as the task makes them: from samples. */
async function spoken(text: string, format: AudioFormat, changes: Partial<SpeechCall> = {}): Promise<Buffer> {
  if (speech?.formats.includes(format) === true)
    return collected(speak(speechCall({ text, format, ...changes })));
  const pcm = speak(speechCall({ text, format: 'pcm', ...changes }));
  return collected(transcode(pcm, format, { signal }));
}

async function recognised(audio: Buffer): Promise<string> {
  return (await transcribe(transcriptionCall(audio))).text;
}

describe('the sandbox’s speech', () => {
  it('lasts fifteen characters a second, whatever they are, at any speed', async () => {
    for (const text of [ENGLISH, JAPANESE, '😀👍🎉'.repeat(12), 'a '.repeat(40)])
      for (const speed of [0.5, 1, 2.5]) {
        const pcm = await spoken(text, 'pcm', { speed });
        const seconds = [...text.trim()].length / 15 / speed;
        expect(pcm.length / 2 / PCM_RATE, text).to.be.closeTo(seconds, 0.01);
      }
  });

  it('is never shorter than half a second, and of nothing but a directive is silence', async () => {
    for (const text of ['', 'a', '[[sandbox:delay=1]]'])
      expect((await spoken(text, 'pcm')).length).to.equal(PCM_RATE);
  });

  it('is heard: English as words, other writing as notes', async () => {
    for (const text of [ENGLISH, JAPANESE]) {
      const samples = await decoded(await spoken(text, 'wav'));
      const voiced = samples.subarray(0, samples.length - 4800);
      const loudness = Math.sqrt(voiced.reduce((sum, value) => sum + value * value, 0) / voiced.length);
      expect(loudness, text).to.be.within(0.02, 0.4);
    }
  });

  it('is the same for the same call, and another for another voice or text', async () => {
    const one = await spoken(ENGLISH, 'pcm');
    expect(one.equals(await spoken(ENGLISH, 'pcm'))).to.equal(true);
    expect(one.equals(await spoken(ENGLISH, 'pcm', { upstreamVoice: 'other' }))).to.equal(false);
    expect(one.equals(await spoken(ENGLISH.replace('fox', 'cat'), 'pcm'))).to.equal(false);
  });

  it('has another pitch for another voice', async () => {
    const samplesOf = async (voice: string) =>
      decoded(await spoken('あ'.repeat(15), 'wav', { upstreamVoice: voice }));
    const pitchOf = (samples: Float32Array) => {
      const strengths = Array.from({ length: 400 }, (_, index) => strengthOf(samples, 60 + index));
      return 60 + strengths.indexOf(Math.max(...strengths));
    };
    const pitches = await Promise.all(
      ['alloy', 'echo', 'nova'].map(async (voice) => pitchOf(await samplesOf(voice))),
    );
    expect(new Set(pitches).size).to.equal(3);
  });

  it('comes sentence by sentence', async () => {
    const pieces: number[] = [];
    for await (const piece of speak(speechCall({ text: ENGLISH.repeat(3), format: 'pcm' })))
      pieces.push(piece.length);
    expect(pieces.length).to.be.greaterThan(10);
    expect(Math.max(...pieces)).to.be.at.most(9600);
  });

  it('takes the speed from the settings of a voice as well', async () => {
    const pcm = await spoken(ENGLISH, 'pcm', { options: { voice_settings: { speed: 2 } } });
    expect(pcm.length / 2 / PCM_RATE).to.be.closeTo(ENGLISH.length / 30, 0.01);
  });

  it('names a misspelt directive', async () => {
    const error = await failureOf(spoken('Hello [[sandbox:slow]]', 'mp3'));
    expect((error as ProviderError).publicMessage).to.include('[[sandbox:slow]]');
  });
});

describe('the sandbox’s transcription', () => {
  for (const format of ['mp3', 'wav', 'opus', 'flac'] as const) {
    it(`recognises from the audio what was said, in ${format}`, async () => {
      for (const text of ['Hi', ENGLISH, JAPANESE, `Emoji 😀, é and [whispers] ${JAPANESE}`])
        expect(await recognised(await spoken(text, format)), text).to.equal(text);
    });
  }

  it('recognises long texts, slow and quick ones', async () => {
    const long = Array.from({ length: 30 }, (_, index) => `This is sentence number ${index}.`).join(' ');
    expect(await recognised(await spoken(long, 'mp3'))).to.equal(long);
    expect(await recognised(await spoken(ENGLISH, 'mp3', { speed: 0.25 }))).to.equal(ENGLISH);
    expect(await recognised(await spoken(ENGLISH, 'mp3', { speed: 2 }))).to.equal(ENGLISH);
  });

  it('recognises it after another encoder, at another rate, in stereo', async () => {
    const wav = await spoken(ENGLISH, 'wav');
    for (const [ending, ...options] of [
      ['mp3', '-ar', '44100', '-ac', '2', '-b:a', '128k'],
      ['wav', '-ar', '48000', '-ac', '2'],
      ['ogg', '-c:a', 'libopus', '-b:a', '64k'],
    ] as const)
      expect(await recognised(await ffmpeg(wav, ending, ...options)), ending).to.equal(ENGLISH);
  });

  it('says what is left of it when the audio was cut', async () => {
    const long = Array.from({ length: 20 }, (_, index) => `This is sentence number ${index}.`).join(' ');
    const wav = await spoken(long, 'wav', { speed: 2.5 });
    const text = await recognised(Buffer.concat([wav.subarray(0, 44), wav.subarray(wav.length / 2)]));
    expect(text).to.include('This is sentence number');
    expect(text).to.not.include('[sandbox]');
  });

  it('says of other audio that it does not know it', async () => {
    for (const audio of [toneWav(3), await ffmpeg(toneWav(3), 'm4a'), Buffer.from('no audio at all')])
      expect(await recognised(audio)).to.match(/^\[sandbox\] Nothing that the sandbox said was recognised/);
  });

  it('gives the times at which its sentences and words were said', async () => {
    const audio = await spoken('One two. Three four five.', 'mp3');
    const call = transcriptionCall(audio, { wantsSegments: true, wantsWords: true });
    const { segments = [], words = [] } = await transcribe(call);
    expect(segments.map(({ text }) => text)).to.deep.equal(['One two. ', 'Three four five.']);
    expect(segments[1]?.start).to.be.closeTo(9 / 15, 0.05);
    expect(words.map(({ word }) => word)).to.deep.equal(['One', 'two', 'Three', 'four', 'five']);
  });
});
