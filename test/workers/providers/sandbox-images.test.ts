/** The sandbox's pictures: what of a call is seen in them, and that they are the same for the same call. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import sharp from 'sharp';
import { inspectPicture } from '../../../core/pictures.ts';
import type { ImageCall, ProviderError } from '../../../workers/providers/provider.ts';
import { drawScene } from '../../../workers/providers/sandbox/drawing.ts';
import { makeSandboxProvider } from '../../../workers/providers/sandbox/index.ts';
import { inputOf, makeMask, makePng } from '../../helpers/pictures.ts';
import { failureOf } from './conformance.ts';
import { bytesOf, collectEvents, imageCall } from './conformance-images.ts';

const { image } = makeSandboxProvider({
  name: 'sandbox',
  kind: 'sandbox',
  baseUrl: undefined,
  credential: undefined,
});

function callOf(changes: Partial<ImageCall> = {}): ImageCall {
  return imageCall({ prompt: 'A red fox in the snow', size: '200x120', ...changes });
}

async function drawn(changes: Partial<ImageCall> = {}): Promise<Buffer> {
  const made = await image?.produce(callOf(changes));
  return made?.images[0]?.bytes ?? Buffer.alloc(0);
}

const pixelsOf = (bytes: Buffer): Promise<Buffer> => sharp(bytes).ensureAlpha().raw().toBuffer();

/** The share of pixels that differ. */
async function difference(one: Buffer, other: Buffer): Promise<number> {
  const [a, b] = await Promise.all([pixelsOf(one), pixelsOf(other)]);
  let different = 0;
  for (let at = 0; at < a.length; at += 4) if (a.readUInt32LE(at) !== b.readUInt32LE(at)) different += 1;
  return different / (a.length / 4);
}

const photo = inputOf(makePng(200, 120, { rgb: [90, 140, 200] }), 'image/png');

describe('the sandbox’s pictures', () => {
  it('are the same for the same call', async () => {
    expect(await drawn()).to.deep.equal(await drawn());
    expect(await drawn({ images: [photo] })).to.deep.equal(await drawn({ images: [photo] }));
  });

  it('are clearly different for another prompt, seed or position', async () => {
    const first = await drawn();
    expect(await difference(first, await drawn({ prompt: 'A city at night' }))).to.be.greaterThan(0.5);
    expect(await difference(first, await drawn({ seed: 7 }))).to.be.greaterThan(0.5);
    const both = await image?.produce(callOf({ count: 2 }));
    expect(await difference(first, both?.images[1]?.bytes ?? Buffer.alloc(0))).to.be.greaterThan(0.5);
    expect(both?.images[0]?.bytes).to.deep.equal(first);
  });

  it('have the asked size and format', async () => {
    for (const outputFormat of ['png', 'jpeg', 'webp'] as const)
      for (const size of ['16x16', '333x77', '1024x1536'])
        expect(await inspectPicture(await drawn({ size, outputFormat }))).to.include({
          format: outputFormat,
          width: Number(size.split('x')[0]),
          height: Number(size.split('x')[1]),
        });
  });

  it('have more in them with a higher quality', async () => {
    const scene = { words: '', salt: 's', width: 100, height: 100, ground: 'full' as const };
    expect(drawScene({ ...scene, detail: 40 }).length).to.be.greaterThan(
      drawScene({ ...scene, detail: 7 }).length,
    );
    const bytes = await Promise.all(
      ['low', 'medium', 'high'].map(async (quality) => (await drawn({ quality, size: '512x512' })).length),
    );
    expect(new Set(bytes).size).to.equal(3);
  });

  it('are transparent where nothing is drawn, when that is asked for', async () => {
    for (const outputFormat of ['png', 'webp'] as const) {
      const opacity = await sharp(await drawn({ background: 'transparent', outputFormat, quality: 'low' }))
        .extractChannel('alpha')
        .raw()
        .toBuffer();
      const share = opacity.filter((value) => value === 0).length / opacity.length;
      expect(share).to.be.within(0.1, 0.95);
    }
    const error = await failureOf(drawn({ background: 'transparent', outputFormat: 'jpeg' }));
    expect(error).to.include({ kind: 'rejected', param: 'background' });
  });

  it('take any characters of a prompt, and end where there is no room', async () => {
    for (const prompt of [
      '<svg> & "quotes" ]]>',
      '夕焼けの富士山 🦊',
      '\u0000\ud800',
      'x'.repeat(32_000),
      '',
    ])
      expect(await inspectPicture(await drawn({ prompt }))).to.include({ width: 200 });
  });

  it('come rough first and then finer', async () => {
    const events = await collectEvents(
      image?.stream(callOf({ partialImages: 3, size: '256x256' })) ?? never(),
    );
    const finished = events.at(-1);
    const distances = await Promise.all(
      events.map(async (event) =>
        distance(await pixelsOf(bytesOf(event)), await pixelsOf(bytesOf(finished))),
      ),
    );
    expect(distances).to.have.length(4);
    expect(distances).to.deep.equal(distances.toSorted((a, b) => b - a));
    expect(distances[3]).to.equal(0);
  });

  describe('as edits', () => {
    it('show both the picture and the prompt', async () => {
      const plain = await drawn({ size: '200x120' });
      const edited = await drawn({ images: [photo] });
      expect(await difference(edited, photo.bytes)).to.be.greaterThan(0.9);
      expect(await difference(edited, plain)).to.be.greaterThan(0.5);
      const other = inputOf(makePng(200, 120, { rgb: [250, 20, 20] }), 'image/png');
      expect(await difference(edited, await drawn({ images: [other] }))).to.be.greaterThan(0.5);
      expect(
        await difference(edited, await drawn({ images: [photo], prompt: 'A city at night' })),
      ).to.be.greaterThan(0.5);
    });

    it('show further pictures as small ones', async () => {
      const other = inputOf(makePng(30, 30, { rgb: [250, 20, 20] }), 'image/png');
      const share = await difference(
        await drawn({ images: [photo] }),
        await drawn({ images: [photo, other, other] }),
      );
      expect(share).to.be.within(0.01, 0.2);
    });

    it('change only what the mask leaves transparent, and leave the rest to the bit', async () => {
      const noise = await sharp({
        create: {
          width: 200,
          height: 120,
          channels: 4,
          background: '#00000080',
          noise: { type: 'gaussian', mean: 128, sigma: 50 },
        },
      })
        .png()
        .toBuffer();
      const hole = { left: 50, top: 30, width: 80, height: 60 };
      const mask = inputOf(makeMask(200, 120, hole), 'image/png');
      const edited = await drawn({ images: [inputOf(noise, 'image/png')], mask });
      const [before, after] = await Promise.all([pixelsOf(noise), pixelsOf(edited)]);
      let changed = 0;
      for (let y = 0; y < 120; y += 1)
        for (let x = 0; x < 200; x += 1) {
          const at = (y * 200 + x) * 4;
          const isHole = x >= 50 && x < 130 && y >= 30 && y < 90;
          const isSame = before.readUInt32LE(at) === after.readUInt32LE(at);
          if (isHole && !isSame) changed += 1;
          if (!isHole) expect(isSame, `${x},${y}`).to.equal(true);
        }
      expect(changed).to.be.greaterThan(80 * 60 * 0.9);
    });

    it('take a mask of another size, and change nothing where it is all opaque', async () => {
      const hole = { left: 0, top: 0, width: 10, height: 12 };
      const half = inputOf(makeMask(20, 12, hole), 'image/png');
      const edited = await pixelsOf(await drawn({ images: [photo], mask: half }));
      expect(edited.readUInt32LE(199 * 4)).to.equal((await pixelsOf(photo.bytes)).readUInt32LE(0));
      expect(edited.readUInt32LE(0)).to.not.equal((await pixelsOf(photo.bytes)).readUInt32LE(0));
      const opaque = makeMask(200, 120, { left: 0, top: 0, width: 0, height: 0 });
      const same = await drawn({ images: [photo], mask: inputOf(opaque, 'image/png') });
      expect(await difference(same, photo.bytes)).to.equal(0);
    });

    it('refuse what they cannot use, and name the field', async () => {
      const junk = inputOf(Buffer.from('junk'), 'image/png');
      const calls: [string, Partial<ImageCall>][] = [
        ['image', { images: [junk] }],
        ['mask', { images: [photo], mask: junk }],
        ['mask', { images: [photo], mask: photo }],
      ];
      for (const [param, changes] of calls)
        expect(await failureOf(drawn(changes))).to.include({ kind: 'rejected', param });
    });
  });

  it('refuse a size that cannot be drawn', async () => {
    for (const size of ['auto', '0x10', '20000x10', '9000x9000', '1e3x10', ''])
      expect(await failureOf(drawn({ size })), size).to.include({ kind: 'rejected', param: 'size' });
  });

  it('tell of an unknown directive by the field that it stood in', async () => {
    const error = (await failureOf(drawn({ prompt: '[[sandbox:explode]]' }))) as ProviderError;
    expect(error.param).to.equal('prompt');
    expect(error.publicMessage).to.include('[[sandbox:explode]]');
  });

  it('leave directives out of the picture, and report no usage when told so', async () => {
    expect(await drawn({ prompt: 'A red fox in the snow [[sandbox:delay=1]]' })).to.deep.equal(await drawn());
    const made = await image?.produce(callOf({ prompt: 'x [[sandbox:no_usage]]' }));
    expect(made?.usage).to.equal(undefined);
  });

  it('break off behind the first of several when told so', async () => {
    const seen: string[] = [];
    const error = await failureOf(
      (async () => {
        const call = callOf({ prompt: 'x [[sandbox:cut]]', count: 2 });
        for await (const event of image?.stream(call) ?? never()) seen.push(event.kind);
      })(),
    );
    expect(error).to.include({ kind: 'invalid_response' });
    expect(seen).to.deep.equal(['image']);
  });
});

function distance(a: Buffer, b: Buffer): number {
  let sum = 0;
  for (let at = 0; at < a.length; at += 1) sum += Math.abs((a[at] ?? 0) - (b[at] ?? 0));
  return sum;
}

function never(): never {
  throw new Error('The sandbox has no pictures.');
}
