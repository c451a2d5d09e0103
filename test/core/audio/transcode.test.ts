/** Every format we give, decoded by ffmpeg, which knows none of our encoders. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { AUDIO_FORMATS, type AudioFormat } from '../../../core/audio/formats.ts';
import { PCM_RATE } from '../../../core/audio/pcm.ts';
import { transcode } from '../../../core/audio/transcode.ts';
import { collected, decoded, inPieces, strengthOf, tonePcm } from '../../helpers/audio.ts';

const TONE_HZ = 440;
/** At once in one process (core/audio/transcode.ts). */
const ENCODERS = 16;
const signal = new AbortController().signal;

async function made(to: AudioFormat, pcm: Buffer, pieceBytes = 4000): Promise<Buffer> {
  return collected(transcode(inPieces(pcm, pieceBytes), to, { signal }));
}

/** Codecs work in frames: a few of them may be added. */
const SLACK_SECONDS: Readonly<Record<AudioFormat, number>> = {
  pcm: 0,
  wav: 0,
  flac: 0,
  opus: 0.001,
  mp3: 0.08,
  aac: 0.1,
};

describe('speech from bare samples', () => {
  for (const format of AUDIO_FORMATS.filter((name) => name !== 'pcm')) {
    it(`is the same sound of the same length as ${format}`, async () => {
      const seconds = 3.21;
      const samples = await decoded(await made(format, tonePcm(seconds, TONE_HZ)));
      expect(samples.length / PCM_RATE).to.be.within(
        seconds - 0.001,
        seconds + SLACK_SECONDS[format] + 0.001,
      );
      const middle = samples.subarray(PCM_RATE, 2 * PCM_RATE);
      expect(strengthOf(middle, TONE_HZ)).to.be.closeTo(0.3, 0.02);
      expect(strengthOf(middle, TONE_HZ * 2)).to.be.below(0.01);
    });

    it(`may be a moment as ${format}, or nothing`, async () => {
      expect((await decoded(await made(format, tonePcm(0.01)))).length).to.be.at.least(240);
      expect((await made(format, Buffer.alloc(0))).length).to.be.below(1000);
    });

    it(`comes as ${format} while more is still to be said`, async () => {
      const more = Promise.withResolvers<void>();
      async function* halting(): AsyncGenerator<Buffer> {
        yield* inPieces(tonePcm(4), 9600);
        await more.promise;
        yield tonePcm(1);
      }
      const audio = transcode(halting(), format, { signal });
      expect((await audio.next()).value)
        .to.have.property('length')
        .greaterThan(0);
      more.resolve();
      await collected(audio);
    });

    it(`ends as ${format} with its source's error, and lets go of the source when nobody listens`, async () => {
      const reason = new Error('The provider died.');
      let isClosed = false;
      async function* dying(): AsyncGenerator<Buffer> {
        try {
          yield tonePcm(5);
          throw reason;
        } finally {
          isClosed = true;
        }
      }
      const error = await collected(transcode(dying(), format, { signal })).catch(
        (thrown: unknown) => thrown,
      );
      expect(error).to.equal(reason);
      isClosed = false;
      const audio = transcode(dying(), format, { signal });
      await audio.next();
      await audio.return();
      // A header alone may have been taken: then the source had not begun.
      if (format !== 'wav') expect(isClosed).to.equal(true);
    });

    it(`rethrows an abort's reason as ${format}`, async () => {
      const controller = new AbortController();
      const reason = new Error('Cancelled.');
      const audio = transcode(inPieces(tonePcm(20), 9600), format, { signal: controller.signal });
      await audio.next();
      controller.abort(reason);
      expect(await collected(audio).catch((thrown: unknown) => thrown)).to.equal(reason);
    });
  }

  it('is waited for no longer than the caller does, while all encoders are taken', async () => {
    const takeAll = async () => {
      const taken = Array.from({ length: ENCODERS }, () => {
        return transcode(inPieces(tonePcm(20), 9600), 'opus', { signal });
      });
      await Promise.all(taken.map((audio) => audio.next()));
      return async () => void (await Promise.all(taken.map((audio) => audio.return())));
    };
    const giveBack = await takeAll();
    const controller = new AbortController();
    const reason = new Error('Cancelled.');
    const waiting = collected(
      transcode(inPieces(tonePcm(1), 9600), 'opus', { signal: controller.signal }),
    ).catch((thrown: unknown) => thrown);
    controller.abort(reason);
    expect(await waiting).to.equal(reason);
    await giveBack();
    // its place is nobody's: all can be taken again
    await (await takeAll())();
  });

  it('stays whole when pieces end within a sample', async () => {
    const pcm = tonePcm(0.5);
    expect((await made('pcm', pcm, 333)).equals(pcm)).to.equal(true);
    const wav = await made('wav', pcm, 333);
    expect(wav.subarray(44).equals(pcm)).to.equal(true);
  });

  it('says its length in a WAV where it is known', async () => {
    const pcm = tonePcm(1);
    const wav = await collected(transcode(inPieces(pcm, 5000), 'wav', { signal, pcmBytes: pcm.length }));
    expect(wav.readUInt32LE(40)).to.equal(pcm.length);
    expect(wav.readUInt32LE(4)).to.equal(wav.length - 8);
  });

  it('is encoded for many callers at once, each getting their own', async () => {
    const tones = Array.from({ length: 20 }, (_, index) => 300 + 50 * index);
    const all = await Promise.all(
      tones.map(async (hz, index) => {
        const format = (['mp3', 'opus', 'flac', 'aac'] as const)[index % 4] ?? 'mp3';
        return { hz, samples: await decoded(await made(format, tonePcm(0.6, hz))) };
      }),
    );
    for (const { hz, samples } of all)
      expect(strengthOf(samples.subarray(4800, 12_000), hz), `${hz} Hz`).to.be.greaterThan(0.2);
  });
});
