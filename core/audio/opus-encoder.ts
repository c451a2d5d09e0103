/** libopus behind mediabunny's interface for encoders, which has none of its own outside browsers. For 24 kHz in one channel. */
import { type AudioSample, CustomAudioEncoder, EncodedPacket } from 'mediabunny';
import OpusScript from 'opusscript';
import { PCM_RATE } from './pcm.ts';

/** 20 ms. */
const FRAME_SAMPLES = 480;
const FRAME_BYTES = FRAME_SAMPLES * 2;
/** Opus counts in 48 kHz, whatever it is given. */
const UNIT_RATE = 48_000;
const UNITS_PER_SAMPLE = UNIT_RATE / PCM_RATE;
/** What libopus looks ahead at 24 kHz (6.5 ms): decoders leave out as much at the beginning. */
const PRE_SKIP_UNITS = 312;
/** Of a decoder's header (RFC 7845, section 5.1). */
const HEAD_BYTES = 19;

export class OpusEncoder extends CustomAudioEncoder {
  #encoder: OpusScript | undefined;
  #waiting = Buffer.alloc(0);
  #samples = 0;
  #frames = 0;

  static override supports(codec: string, config: AudioEncoderConfig): boolean {
    return codec === 'opus' && config.sampleRate === PCM_RATE && config.numberOfChannels === 1;
  }

  init(): void {
    this.#encoder = new OpusScript(PCM_RATE, 1, OpusScript.Application.AUDIO);
    this.#encoder.setBitrate(this.config.bitrate ?? UNIT_RATE);
  }

  encode(sample: AudioSample): void {
    const bytes = Buffer.alloc(sample.allocationSize({ planeIndex: 0, format: 's16' }));
    sample.copyTo(bytes, { planeIndex: 0, format: 's16' });
    this.#samples += sample.numberOfFrames;
    this.#waiting = Buffer.concat([this.#waiting, bytes]);
    let at = 0;
    for (; at + FRAME_BYTES <= this.#waiting.length; at += FRAME_BYTES)
      this.#put(this.#waiting.subarray(at, at + FRAME_BYTES), FRAME_SAMPLES * UNITS_PER_SAMPLE);
    this.#waiting = this.#waiting.subarray(at);
  }

  /** The rest, with silence behind it until the encoder has given back all it was given. */
  flush(): void {
    const wanted = this.#samples * UNITS_PER_SAMPLE + PRE_SKIP_UNITS;
    for (;;) {
      const left = wanted - this.#frames * FRAME_SAMPLES * UNITS_PER_SAMPLE;
      if (left <= 0) return;
      const frame = Buffer.alloc(FRAME_BYTES);
      this.#waiting.copy(frame);
      this.#waiting = Buffer.alloc(0);
      this.#put(frame, Math.min(left, FRAME_SAMPLES * UNITS_PER_SAMPLE));
    }
  }

  close(): void {
    this.#encoder?.delete();
    this.#encoder = undefined;
  }

  /** `units`: how much of the frame is meant to be heard. */
  #put(frame: Buffer, units: number): void {
    if (this.#encoder === undefined) throw new Error('The encoder is closed.');
    const data = new Uint8Array(this.#encoder.encode(frame, FRAME_SAMPLES));
    const start = (this.#frames * FRAME_SAMPLES) / PCM_RATE;
    const meta = this.#frames === 0 ? { decoderConfig: decoderConfig() } : undefined;
    this.#frames += 1;
    this.onPacket(new EncodedPacket(data, 'key', start, units / UNIT_RATE), meta);
  }
}

function decoderConfig(): AudioDecoderConfig {
  const head = Buffer.alloc(HEAD_BYTES);
  head.write('OpusHead', 0, 'latin1');
  head.writeUInt8(1, 8);
  head.writeUInt8(1, 9);
  head.writeUInt16LE(PRE_SKIP_UNITS, 10);
  head.writeUInt32LE(PCM_RATE, 12);
  return { codec: 'opus', sampleRate: UNIT_RATE, numberOfChannels: 1, description: new Uint8Array(head) };
}
