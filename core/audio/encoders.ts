/** The encoders and what they are told, loaded by the first that is needed: a process without speech pays nothing. */
import { registerAacEncoder } from '@mediabunny/aac-encoder';
import { registerFlacEncoder } from '@mediabunny/flac-encoder';
import { registerMp3Encoder } from '@mediabunny/mp3-encoder';
import {
  AdtsOutputFormat,
  AppendOnlyStreamTarget,
  AudioSample,
  AudioSampleSource,
  FlacOutputFormat,
  Mp3OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat,
  registerEncoder,
} from 'mediabunny';
import { OpusEncoder } from './opus-encoder.ts';
import { PCM_RATE } from './pcm.ts';

registerMp3Encoder();
registerFlacEncoder();
registerAacEncoder();
registerEncoder(OpusEncoder);

/** Each written from beginning to end, nothing of it changed afterwards: lengths are not in their headers. */
const FORMATS: Readonly<Record<'mp3' | 'opus' | 'flac' | 'aac', () => OutputFormat>> = {
  mp3: () => new Mp3OutputFormat({ xingHeader: false }),
  opus: () => new OggOutputFormat(),
  flac: () => new FlacOutputFormat({ appendOnly: true }),
  aac: () => new AdtsOutputFormat(),
};

/** `onBytes` is called during `add` and `finalize`, or shortly after. */
export async function startEncoder(
  to: keyof typeof FORMATS,
  bitsPerSecond: number | undefined,
  onBytes: (bytes: Buffer) => void,
): Promise<{ output: Output; source: AudioSampleSource }> {
  const output = new Output({
    format: FORMATS[to](),
    target: new AppendOnlyStreamTarget(
      // The encoder's buffer is its own: what is kept is a copy.
      new WritableStream<Uint8Array>({ write: (bytes) => onBytes(Buffer.from(bytes)) }),
    ),
  });
  const source = new AudioSampleSource(
    bitsPerSecond === undefined ? { codec: 'flac' } : { codec: to, bitrate: bitsPerSecond },
  );
  output.addAudioTrack(source);
  await output.start();
  return { output, source };
}

/** `start`: seconds from the beginning. */
export function makeSample(pcm: Buffer, start: number): AudioSample {
  return new AudioSample({
    data: new Uint8Array(pcm),
    format: 's16',
    numberOfChannels: 1,
    sampleRate: PCM_RATE,
    timestamp: start,
  });
}
