/**
 * Audio on its two ways: to the caller as it comes, in events, and into its file. The caller's way stays a little behind, so that
 * nobody has heard all of it before it is on the books.
 */
import { AUDIO_EVENT_BYTES, type AudioEvent } from '../../../core/speech.ts';
import type { Run } from '../../run.ts';

/** What is kept back: about a frame of MP3, too little to delay what can be heard. */
const KEPT_BYTES = 512;

export class AudioSender {
  /** Why the source ended, where it did not end well. */
  failure: unknown;
  readonly #run: Pick<Run, 'emit'>;
  #offset = 0;
  #kept: Buffer = Buffer.alloc(0);

  constructor(run: Pick<Run, 'emit'>) {
    this.#run = run;
  }

  /** The same audio; each stretch of it is on its way to the caller before it is given. */
  async *passOn(audio: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    try {
      for await (const bytes of audio) {
        await this.#send(bytes);
        yield bytes;
      }
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }

  /** What is still to be sent when the file is complete. */
  lastEvents(): string[] {
    return this.#kept.length === 0 ? [] : [this.#eventOf(this.#kept)];
  }

  async #send(bytes: Buffer): Promise<void> {
    const waiting = this.#kept.length === 0 ? bytes : Buffer.concat([this.#kept, bytes]);
    const free = Math.max(0, waiting.length - KEPT_BYTES);
    for (let start = 0; start < free; start += AUDIO_EVENT_BYTES) {
      await this.#run.emit(this.#eventOf(waiting.subarray(start, Math.min(start + AUDIO_EVENT_BYTES, free))));
    }
    this.#kept = waiting.subarray(free);
  }

  #eventOf(bytes: Buffer): string {
    const event: AudioEvent = { offset: this.#offset, data: bytes.toString('base64') };
    this.#offset += bytes.length;
    return JSON.stringify(event);
  }
}
