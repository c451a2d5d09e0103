/** Audio files as they come, and as somebody sends them who would rather pay for less. */
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { AudioError, type AudioProblem } from '../../../core/audio/audio-file.ts';
import { type AudioMeter, makeAudioMeter } from '../../../core/audio/measure.ts';
import { wavHeader } from '../../../core/audio/pcm.ts';
import { ffmpeg, silentMp3, tonePcm, toneWav } from '../../helpers/audio.ts';
import { makePng } from '../../helpers/pictures.ts';

const SECONDS = 10;
/** Of 25 MB, on a slow and busy machine. */
const MAX_MS = 25_000;
const MAX_UPLOAD_BYTES = 25 * 1024 * 1024;

describe('the length of audio', () => {
  let meter: AudioMeter;
  let tone: Buffer;

  before(() => {
    meter = makeAudioMeter();
    tone = toneWav(SECONDS);
  });
  after(() => meter.close());

  const made = (ending: string, ...options: string[]) => ffmpeg(tone, ending, ...options);
  async function problemOf(bytes: Buffer): Promise<AudioProblem | string> {
    const result = await meter.measure(bytes).catch((error: unknown) => error);
    return result instanceof AudioError ? result.problem : `measured: ${JSON.stringify(result)}`;
  }
  const secondsOf = async (bytes: Buffer) => (await meter.measure(bytes)).durationMs / 1000;

  const files: [what: string, type: string, contentType: string, () => Promise<Buffer>, slack?: number][] = [
    ['a WAV', 'wav', 'audio/wav', async () => tone],
    ['a WAV of floats', 'wav', 'audio/wav', () => made('wav', '-c:a', 'pcm_f32le')],
    ['a WAV of 8-bit stereo', 'wav', 'audio/wav', () => made('wav', '-c:a', 'pcm_u8', '-ac', '2')],
    ['a WAV of µ-law', 'wav', 'audio/wav', () => made('wav', '-c:a', 'pcm_mulaw')],
    ['an MP3', 'mp3', 'audio/mpeg', () => made('mp3')],
    ['an MP3 of variable bit rate', 'mp3', 'audio/mpeg', () => made('mp3', '-q:a', '5', '-ar', '44100')],
    ['an MP3 without a Xing frame', 'mp3', 'audio/mpeg', () => made('mp3', '-write_xing', '0'), 0.15],
    ['an M4A', 'm4a', 'audio/mp4', () => made('m4a')],
    ['an MP4 with a picture', 'mp4', 'audio/mp4', () => made('mp4', ...VIDEO)],
    [
      'a fragmented MP4',
      'mp4',
      'audio/mp4',
      () => made('mp4', '-movflags', 'frag_keyframe+empty_moov'),
      0.05,
    ],
    ['a WebM of Opus', 'webm', 'audio/webm', () => made('webm', '-c:a', 'libopus'), 0.02],
    ['a WebM of Vorbis', 'webm', 'audio/webm', () => made('webm', '-c:a', 'libvorbis', '-ac', '2'), 0.02],
    ['an Ogg of Opus', 'ogg', 'audio/ogg', () => made('ogg', '-c:a', 'libopus')],
    ['an Ogg of Vorbis', 'ogg', 'audio/ogg', () => made('ogg', '-c:a', 'libvorbis', '-ac', '2')],
    ['an Ogg of FLAC', 'ogg', 'audio/ogg', () => made('ogg', '-c:a', 'flac')],
    ['a FLAC', 'flac', 'audio/flac', () => made('flac')],
  ];
  for (const [what, type, contentType, make, slack = 0] of files) {
    it(`is read from ${what}`, async () => {
      const audio = await meter.measure(await make());
      expect(audio).to.include({ type, contentType });
      expect(audio.durationMs / 1000).to.be.within(SECONDS - slack, SECONDS + slack);
    });
  }

  it('is known of files with tags in front and behind', async () => {
    const mp3 = await made('mp3', '-metadata', 'title=A title');
    const id3v1 = Buffer.alloc(128);
    id3v1.write('TAG', 'latin1');
    expect(await secondsOf(Buffer.concat([tag(200_000), mp3, id3v1]))).to.equal(SECONDS);
    expect(await secondsOf(Buffer.concat([tag(500), await made('flac')]))).to.equal(SECONDS);
  });

  describe('is what is in the file when the header lies:', () => {
    it('a WAV that claims less, more, nothing, or all there is', async () => {
      for (const claim of [0, 2, 48_000, 0x7fff_ffff, 0xffff_ffff]) {
        const wav = Buffer.concat([wavHeader(undefined), tonePcm(SECONDS)]);
        wav.writeUInt32LE(claim, 40);
        expect(await secondsOf(wav), `${claim}`).to.equal(SECONDS);
      }
    });

    it('a WAV whose claim is true, with more chunks behind it', async () => {
      const list = Buffer.from('LIST\x04\x00\x00\x00abcd', 'latin1');
      expect(await secondsOf(Buffer.concat([tone, list]))).to.equal(SECONDS);
    });

    it('a WAV whose bytes a second are wrong', async () => {
      const wav = Buffer.from(tone);
      wav.writeUInt32LE(48_000_000, 28);
      expect(await secondsOf(wav)).to.equal(SECONDS);
    });

    it('an MP3 whose Xing frame claims few frames', async () => {
      const mp3 = await made('mp3');
      const xing = mp3.indexOf(/* either name */ mp3.includes('Xing') ? 'Xing' : 'Info');
      mp3.writeUInt32BE(3, xing + 8);
      expect(await secondsOf(mp3)).to.equal(SECONDS);
    });

    it('an MP3 that claims to be padding all over gains a fraction of a second', async () => {
      const mp3 = await made('mp3');
      const lame = mp3.indexOf('Lavc');
      mp3.writeUIntBE(0xffffff, lame + 21, 3);
      expect(await secondsOf(mp3)).to.be.within(SECONDS - 0.4, SECONDS + 0.1);
    });

    it('an MP4 whose time stamps run a hundred times faster', async () => {
      const m4a = await made('m4a');
      for (const box of ['mdhd', 'mvhd']) {
        const at = m4a.indexOf(box) + 16;
        m4a.writeUInt32BE(m4a.readUInt32BE(at) * 100, at);
      }
      expect(await secondsOf(m4a)).to.be.within(SECONDS, SECONDS + 0.1);
    });

    it('an Ogg whose last page claims to be the first second', async () => {
      const ogg = await made('ogg', '-c:a', 'libopus');
      const last = ogg.lastIndexOf('OggS');
      ogg.writeBigUInt64LE(48_000n, last + 6);
      // A page with a wrong checksum may be left out; nothing else may be.
      expect(await secondsOf(ogg)).to.be.within(SECONDS - 1.1, SECONDS + 0.1);
    });

    it('a FLAC that claims to have ten samples', async () => {
      const flac = await made('flac');
      flac.writeUInt32BE(10, 22);
      expect(await secondsOf(flac)).to.equal(SECONDS);
    });
  });

  describe('is not known of', () => {
    const refused: [what: string, problem: AudioProblem, () => Promise<Buffer> | Buffer][] = [
      ['nothing', 'empty', () => Buffer.alloc(0)],
      ['one byte', 'not_audio', () => Buffer.from([0xff])],
      ['a picture', 'not_audio', () => makePng(64, 64)],
      ['a text', 'not_audio', () => Buffer.from('RIFF and other words that begin well')],
      ['zeros', 'not_audio', () => Buffer.alloc(100_000)],
      ['a RIFF that is no WAVE', 'not_audio', () => Buffer.from('RIFF\x10\x00\x00\x00AVI LIST', 'latin1')],
      ['bare AAC', 'not_audio', () => made('aac')],
      ['an MP4 without sound', 'not_audio', () => made('mp4', ...VIDEO, '-an')],
      ['a WAV without samples', 'damaged', () => wavHeader(0)],
      ['a WAV that ends in its header', 'damaged', () => wavHeader(9).subarray(0, 30)],
      ['a WAV of no channels', 'damaged', () => patched(toneWav(1), 22, 0)],
      ['a WAV of MP3', 'unsupported', () => patched(toneWav(1), 20, 0x55)],
      ['an M4A of ALAC', 'unsupported', () => made('m4a', '-c:a', 'alac')],
      ['half an M4A', 'damaged', async () => half(await made('m4a'))],
      ['the beginning of a FLAC', 'damaged', async () => (await made('flac')).subarray(0, 60)],
      ['an ID3 tag and nothing', 'damaged', () => tag(1000)],
      ['an ID3 tag that claims 256 MB', 'damaged', () => lyingTag()],
      [
        'a hundred ID3 tags',
        'damaged',
        () => Buffer.concat([...Array.from({ length: 100 }, () => tag(10)), silentMp3(1)]),
      ],
      ['a picture behind an ID3 tag', 'not_audio', () => Buffer.concat([tag(10), makePng(64, 64)])],
      [
        'a few frames of an MP3 and a book',
        'not_audio',
        () => Buffer.concat([silentMp3(0.5), Buffer.alloc(500_000, 'words ')]),
      ],
    ];
    for (const [what, problem, make] of refused) {
      it(what, async () => {
        expect(await problemOf(await make())).to.equal(problem);
      });
    }

    it('days of silence in a small file', async () => {
      const wav = Buffer.concat([wavHeader(undefined), Buffer.alloc(1_000_000)]);
      wav.writeUInt32LE(1, 24);
      expect(await problemOf(wav)).to.equal('too_long');
    });
  });

  it('is what is left of audio that was cut', async () => {
    for (const ending of ['mp3', 'flac'])
      expect(await secondsOf(half(await made(ending))), ending).to.be.within(4, 6);
    for (const codec of ['libopus', 'libvorbis'])
      expect(await secondsOf(half(await made('ogg', '-c:a', codec, '-ac', '2'))), codec).to.be.within(3, 6);
    expect(await secondsOf(half(tone))).to.be.within(4.9, 5.1);
    expect(await secondsOf(half(await made('m4a', '-movflags', 'faststart')))).to.be.within(4, 6);
    expect(await secondsOf(half(await made('webm', '-c:a', 'libopus')))).to.be.within(3, 6);
  });

  describe('is found in bounded time and memory', () => {
    const large: [what: string, () => Promise<Buffer> | Buffer][] = [
      ['25 MB of the lowest bit rate', () => repeated(lowestMp3(), MAX_UPLOAD_BYTES)],
      ['25 MB of sync words', () => Buffer.alloc(MAX_UPLOAD_BYTES, Buffer.from([0xff, 0xfb]))],
      ['25 MB of FLAC that never begins', () => flacOf(Buffer.alloc(MAX_UPLOAD_BYTES, 0xff))],
      [
        '25 MB of sync words behind an MP3',
        () => Buffer.concat([silentMp3(60), Buffer.alloc(24 * 1024 * 1024, Buffer.from([0xff, 0xfb]))]),
      ],
      [
        '25 MB of sync words in a FLAC',
        () => flacOf(Buffer.alloc(MAX_UPLOAD_BYTES, Buffer.from([0xff, 0xf8]))),
      ],
      ['25 MB of empty Ogg pages', () => repeated(oggPage(), MAX_UPLOAD_BYTES)],
      [
        '25 MB of WAV chunks',
        () => {
          const chunks = repeated(Buffer.from('abcd\x00\x00\x00\x00', 'latin1'), MAX_UPLOAD_BYTES);
          return Buffer.concat([Buffer.from('RIFF\xff\xff\xff\xffWAVE', 'latin1'), chunks]);
        },
      ],
      [
        '25 MB of MP4 boxes',
        () => {
          const box = Buffer.from('\x00\x00\x00\x08free', 'latin1');
          return Buffer.concat([
            Buffer.from('\x00\x00\x00\x10ftypisom\x00\x00\x00\x00', 'latin1'),
            repeated(box, MAX_UPLOAD_BYTES),
          ]);
        },
      ],
      [
        'an MP4 that claims four thousand million packets',
        async () => {
          const m4a = await made('m4a', '-movflags', 'faststart');
          m4a.writeUInt32BE(0xffff_ffff, m4a.indexOf('stsz') + 12);
          m4a.writeUInt32BE(0xffff_ffff, m4a.indexOf('stts') + 12);
          return m4a;
        },
      ],
    ];
    for (const [what, make] of large) {
      it(what, async function () {
        this.timeout(MAX_MS * 3);
        const bytes = await make();
        const before = process.memoryUsage().rss;
        const startedAt = performance.now();
        const result = await meter.measure(bytes).catch((error: unknown) => error);
        expect(performance.now() - startedAt).to.be.below(MAX_MS + 10_000);
        expect(process.memoryUsage().rss - before).to.be.below(400 * 1024 * 1024);
        if (result instanceof Error) expect(result).to.be.instanceOf(AudioError);
      });
    }

    it('and given up when it takes too long, for this file only', async () => {
      const impatient = makeAudioMeter({ timeoutMs: 1 });
      const error = await impatient.measure(tone).catch((thrown: unknown) => thrown);
      expect((error as AudioError).problem).to.equal('too_long');
      await impatient.close();
      expect(await secondsOf(tone)).to.equal(SECONDS);
    });
  });
});

const VIDEO = ['-f', 'lavfi', '-i', `testsrc=duration=${SECONDS}:size=64x64:rate=5`, '-c:v', 'mpeg4'];

/** An ID3v2 tag with so many bytes in it. */
function tag(bytes: number): Buffer {
  const header = Buffer.from('ID3\x04\x00\x00', 'latin1');
  const size = Buffer.from([21, 14, 7, 0].map((shift) => (bytes >> shift) & 0x7f));
  return Buffer.concat([header, size, Buffer.alloc(bytes)]);
}

function lyingTag(): Buffer {
  const bytes = Buffer.concat([tag(10), silentMp3(1)]);
  bytes.fill(0x7f, 6, 10);
  return bytes;
}

function half(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.length / 2);
}

function patched(bytes: Buffer, at: number, value: number): Buffer {
  bytes.writeUInt16LE(value, at);
  return bytes;
}

function repeated(part: Buffer, bytes: number): Buffer {
  return Buffer.alloc(bytes - (bytes % part.length), part);
}

/** MPEG 2.5, 8 kHz, 8 kbit/s: 72 ms in as many bytes. */
function lowestMp3(): Buffer {
  const frame = Buffer.alloc(72);
  frame.writeUInt32BE(0xff_e3_18_c4, 0);
  return frame;
}

function flacOf(frames: Buffer): Buffer {
  const streamInfo = Buffer.alloc(38);
  streamInfo.writeUInt32BE(0x80_00_00_22, 0);
  return Buffer.concat([Buffer.from('fLaC', 'latin1'), streamInfo, frames]);
}

function oggPage(): Buffer {
  const page = Buffer.alloc(28);
  page.write('OggS', 'latin1');
  page[26] = 1;
  return page;
}
