/** The thread in which audio that strangers sent is taken apart. Started and ended by `measure.ts`. */
import { parentPort } from 'node:worker_threads';
import { AudioError, type AudioProblem, findAudioFile } from './audio-file.ts';
import { measureContainer } from './measure-container.ts';
import { measureFlac, measureMp3, measureOgg } from './measure-frames.ts';
import { measureWav } from './measure-wav.ts';
import type { Measured } from './measured.ts';

export type MeasureAnswer = Measured | { readonly problem: AudioProblem };

parentPort?.on('message', async (sent: Uint8Array) => {
  const bytes = Buffer.from(sent.buffer, sent.byteOffset, sent.byteLength);
  let answer: MeasureAnswer;
  try {
    answer = await measured(bytes);
  } catch (error) {
    // A parser that trips over the file says that the file is broken.
    answer = { problem: error instanceof AudioError ? error.problem : 'damaged' };
  }
  parentPort?.postMessage(answer);
});

async function measured(bytes: Buffer): Promise<Measured> {
  const { type, start } = findAudioFile(bytes);
  const audio = bytes.subarray(start);
  switch (type) {
    case 'wav':
      return measureWav(audio);
    case 'mp3':
      return measureMp3(audio);
    case 'flac':
      return measureFlac(audio);
    case 'ogg':
      return measureOgg(audio);
    default:
      return measureContainer(audio);
  }
}
