/**
 * Speech from bare samples into any of our formats, as it comes: libraries only, no program on the machine. MP3, FLAC and AAC are
 * encoded in a thread each; Opus costs so little that it is not. Other sources than `pcm` are not read: every provider makes that.
 */
import { Semaphore } from 'async-mutex';
import type { AudioSampleSource, Output } from 'mediabunny';
import type { AudioFormat } from './formats.ts';
import { PCM_BYTES_PER_SAMPLE, PCM_RATE, wavHeader, wholeSamples } from './pcm.ts';

/** Speech at 24 kHz in one channel needs no more to sound as it should. */
const BITS_PER_SECOND = { mp3: 96_000, opus: 48_000, aac: 64_000 };
/** Encoded at once: a fifth of a second, so that one step is short and the first bytes come soon. */
const STEP_BYTES = (PCM_RATE * PCM_BYTES_PER_SAMPLE) / 5;
/** Under way in one process: each holds a thread and some 10 MB. Others wait with their provider's socket unread. */
const MAX_ENCODERS = 16;

type EncodedFormat = Exclude<AudioFormat, 'pcm' | 'wav'>;

const places = new Semaphore(MAX_ENCODERS);
let loading: Promise<typeof import('./encoders.ts')> | undefined;

/**
 * Yields audio as soon as there is any. `pcmBytes`: how many will come, where it is known, for a WAV that says so. Pausing the
 * iteration pauses the source; an abort rethrows the signal's reason; ending early ends the source and the encoder.
 */
export async function* transcode(
  pcm: AsyncIterable<Buffer>,
  to: AudioFormat,
  { signal, pcmBytes }: { readonly signal: AbortSignal; readonly pcmBytes?: number },
): AsyncGenerator<Buffer, void, undefined> {
  if (to === 'pcm' || to === 'wav') {
    if (to === 'wav') yield wavHeader(pcmBytes);
    for await (const samples of wholeSamples(pcm, STEP_BYTES)) {
      signal.throwIfAborted();
      yield samples;
    }
    return;
  }
  const release = await acquirePlace(signal);
  try {
    yield* encode(pcm, to, signal);
  } finally {
    release();
  }
}

/** Rejects with the signal's reason when that comes before a place does. */
async function acquirePlace(signal: AbortSignal): Promise<() => void> {
  signal.throwIfAborted();
  const acquiring = places.acquire();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const [, release] = await Promise.race([acquiring, aborted]);
    return release;
  } catch (error) {
    // it stays in the queue: when its turn comes it is passed on
    void acquiring.then(([, release]) => release());
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

async function* encode(
  pcm: AsyncIterable<Buffer>,
  to: EncodedFormat,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  loading ??= import('./encoders.ts');
  const { makeSample, startEncoder } = await loading;
  signal.throwIfAborted();
  const made: Buffer[] = [];
  const bitsPerSecond = to === 'flac' ? undefined : BITS_PER_SECOND[to];
  const { output, source }: { output: Output; source: AudioSampleSource } = await startEncoder(
    to,
    bitsPerSecond,
    (bytes) => void made.push(bytes),
  );
  let isFinished = false;
  try {
    let samplesSoFar = 0;
    for await (const bytes of wholeSamples(pcm, STEP_BYTES)) {
      signal.throwIfAborted();
      const sample = makeSample(bytes, samplesSoFar / PCM_RATE);
      samplesSoFar += bytes.length / PCM_BYTES_PER_SAMPLE;
      await source.add(sample);
      sample.close();
      if (made.length > 0) yield Buffer.concat(made.splice(0));
    }
    // Of nothing there is no file.
    if (samplesSoFar === 0) return;
    await output.finalize();
    isFinished = true;
    if (made.length > 0) yield Buffer.concat(made.splice(0));
  } finally {
    if (!isFinished) await output.cancel();
  }
}
