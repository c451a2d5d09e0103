/**
 * How long the audio in an MP4 or WebM lasts: every packet is read and counted with the samples its codec has in one. Time stamps
 * and lengths in headers count for the silence around the audio only.
 */
import {
  BufferSource,
  EncodedPacketSink,
  Input,
  type InputAudioTrack,
  Mp4InputFormat,
  WebMInputFormat,
} from 'mediabunny';
import { AudioError } from './audio-file.ts';
import { type Measured, trimmed } from './measured.ts';

/** A twentieth of a second each, for twelve hours and then some; more are made to keep us busy. */
const MAX_PACKETS = 4_000_000;
const OPUS_RATE = 48_000;
/** Of one Opus packet, whatever it says of itself (RFC 6716, section 3.2). */
const MAX_OPUS_SAMPLES = 5760;
const AAC_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350,
];
/** Audio object types with frames of 1024 samples: Main, LC, SSR, LTP. */
const AAC_TYPES: ReadonlySet<number> = new Set([1, 2, 3, 4]);
/** The same with bands replicated or stereo parametric, named in front of the core's own type. */
const AAC_EXTENDED_TYPES: ReadonlySet<number> = new Set([5, 29]);

/** Samples a packet has at least and at most, at which rate; or how to read it from the packet. */
type PacketSamples = { readonly rate: number } & (
  | { readonly least: number; readonly most: number }
  | { readonly read: (packet: Uint8Array) => number }
);

export async function measureContainer(bytes: Buffer): Promise<Measured> {
  const input = new Input({
    formats: [new Mp4InputFormat(), new WebMInputFormat()],
    source: new BufferSource(bytes),
  });
  try {
    const track = await input.getPrimaryAudioTrack();
    // No tracks at all: what names them is missing.
    if (track === null)
      throw new AudioError((await input.getTracks()).length === 0 ? 'damaged' : 'not_audio');
    const samples = await samplesOf(track);
    if (samples === undefined) throw new AudioError('unsupported');
    const { least, most } = await addUp(track, samples, bytes.length);
    const claimed = await track.computeDuration();
    // A codec whose packets differ is held to what its packets can have.
    const seconds = Math.min(Math.max(claimed, least / samples.rate), most / samples.rate);
    return trimmed(
      { seconds: least === most ? least / samples.rate : seconds, sampleRate: samples.rate },
      claimed,
    );
  } finally {
    input.dispose();
  }
}

async function addUp(
  track: InputAudioTrack,
  samples: PacketSamples,
  fileBytes: number,
): Promise<{ least: number; most: number }> {
  let packets = 0;
  let bytes = 0;
  let least = 0;
  let most = 0;
  for await (const packet of new EncodedPacketSink(track).packets()) {
    packets += 1;
    bytes += packet.byteLength;
    // The same bytes given again and again are no longer audio than a file has room for.
    if (packets > MAX_PACKETS || bytes > fileBytes) throw new AudioError('damaged');
    const exact = 'read' in samples ? samples.read(packet.data) : undefined;
    least += exact ?? ('least' in samples ? samples.least : 0);
    most += exact ?? ('most' in samples ? samples.most : 0);
  }
  if (packets === 0) throw new AudioError('not_audio');
  return { least, most };
}

async function samplesOf(track: InputAudioTrack): Promise<PacketSamples | undefined> {
  const config = await track.getDecoderConfig();
  if (config === null) return undefined;
  const description = config.description === undefined ? undefined : bytesOf(config.description);
  switch (track.codec) {
    case 'opus':
      return { rate: OPUS_RATE, read: opusSamples };
    case 'aac':
      return description && aacSamples(description);
    case 'mp3': {
      const samples = config.sampleRate > 24_000 ? 1152 : 576;
      return { rate: config.sampleRate, least: samples, most: samples };
    }
    case 'vorbis':
      return description && vorbisSamples(description, config.sampleRate);
    case 'flac':
      // STREAMINFO, behind the marker and the block's own header: the smallest and the largest block.
      return description !== undefined && description.length >= 12
        ? { rate: config.sampleRate, least: description.readUInt16BE(8), most: description.readUInt16BE(10) }
        : undefined;
    default:
      return undefined;
  }
}

/** RFC 6716, section 3.1: the first byte says how long the frames are, and, mostly, how many. */
function opusSamples(packet: Uint8Array): number {
  const [first = 0, second = 0] = packet;
  const mode = first >> 3;
  const frame =
    mode < 12
      ? ([480, 960, 1920, 2880][mode % 4] ?? 0)
      : mode < 16
        ? ([480, 960][mode % 2] ?? 0)
        : ([120, 240, 480, 960][mode % 4] ?? 0);
  const code = first & 3;
  const frames = code === 0 ? 1 : code === 3 ? second & 63 : 2;
  return Math.min(frame * frames, MAX_OPUS_SAMPLES);
}

/** AudioSpecificConfig (ISO 14496-3, 1.6.2.1): the core's rate and the length of its frames. */
function aacSamples(description: Buffer): PacketSamples | undefined {
  let at = 0;
  const bits = (count: number): number => {
    let value = 0;
    for (const end = at + count; at < end; at += 1)
      value = (value << 1) | (((description[at >> 3] ?? 0) >> (7 - (at & 7))) & 1);
    return value;
  };
  const rate = (index: number): number => (index === 15 ? bits(24) : (AAC_RATES[index] ?? 0));
  let type = bits(5);
  const coreRate = rate(bits(4));
  bits(4);
  if (AAC_EXTENDED_TYPES.has(type)) {
    rate(bits(4));
    type = bits(5);
  }
  if (!AAC_TYPES.has(type) || coreRate === 0) return undefined;
  const samples = bits(1) === 1 ? 960 : 1024;
  return { rate: coreRate, least: samples, most: samples };
}

/** Three headers laced together, the identification first: its 29th byte has both block sizes; two blocks overlap by half. */
function vorbisSamples(description: Buffer, rate: number): PacketSamples | undefined {
  let at = 1;
  while (description[at] === 255) at += 1;
  at += 1;
  while (description[at] === 255) at += 1;
  at += 1;
  const sizes = description[at + 28];
  if (sizes === undefined) return undefined;
  return { rate, least: 1 << ((sizes & 15) - 1), most: 1 << ((sizes >> 4) - 1) };
}

function bytesOf(source: ArrayBufferView | ArrayBufferLike): Buffer {
  return ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source);
}
