/** What is a picture and what is refused as one, with files made to harm; and what is made of good ones. */
import { availableParallelism } from 'node:os';
import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { describe, it } from 'mocha';
import sharp from 'sharp';
import type { PictureProblem } from '../../core/picture-file.ts';
import {
  encodePicture,
  inspectPicture,
  makePreview,
  matchSize,
  PictureError,
  withSharp,
} from '../../core/pictures.ts';
import { makeMask, makePng, makeZip, pngChunk } from '../helpers/pictures.ts';

const plain = (width = 60, height = 40) =>
  sharp({ create: { width, height, channels: 3, background: '#c04020' } });
const good = {
  png: makePng(60, 40),
  jpeg: await plain().jpeg().toBuffer(),
  'progressive jpeg': await plain().jpeg({ progressive: true }).toBuffer(),
  webp: await plain().webp().toBuffer(),
  'lossless webp': await plain().webp({ lossless: true }).toBuffer(),
};

/** A PNG of 8 × 8 with so many bytes that no decoder looks at. */
function withLoad(bytes: number): Buffer {
  return makePng(8, 8, { before: [pngChunk('prVt', Buffer.alloc(bytes))] });
}

async function problemOf(bytes: Buffer): Promise<PictureProblem> {
  try {
    await inspectPicture(bytes);
  } catch (error) {
    if (error instanceof PictureError) return error.problem;
    throw error;
  }
  throw new Error('It was taken for a picture.');
}

/** A camera's file: a JPEG that announces more, and another one behind it. */
function twoPictures(behind: Buffer): Buffer {
  const segment = Buffer.concat([Buffer.from([0xff, 0xe2, 0, 8]), Buffer.from('MPF\0  ')]);
  return Buffer.concat([good.jpeg.subarray(0, 2), segment, good.jpeg.subarray(2), behind]);
}

describe('pictures', () => {
  describe('are what their bytes say', () => {
    for (const [name, bytes] of Object.entries(good)) {
      it(`for a ${name}`, async () => {
        const format = name.split(' ').at(-1);
        expect(await inspectPicture(bytes)).to.deep.equal({
          format,
          contentType: `image/${format}`,
          width: 60,
          height: 40,
          hasAlpha: false,
        });
      });
    }

    it('with the size as it is seen', async () => {
      const lying = await plain().withMetadata({ orientation: 6 }).jpeg().toBuffer();
      expect(await inspectPicture(lying)).to.include({ width: 40, height: 60 });
    });

    it('and whether they can be transparent', async () => {
      const mask = makeMask(4, 4, { left: 0, top: 0, width: 2, height: 2 });
      expect((await inspectPicture(mask)).hasAlpha).to.equal(true);
    });

    it('up to 64 megapixels and 16,384 pixels a side', async () => {
      expect(await inspectPicture(makePng(16_384, 100))).to.include({ width: 16_384 });
      expect(await inspectPicture(makePng(8_000, 8_000))).to.include({ width: 8_000 });
    });

    it('with the further pictures that cameras put behind them', async () => {
      expect(await inspectPicture(twoPictures(good.jpeg))).to.include({ width: 60 });
    });
  });

  describe('are refused', () => {
    const refused: [string, PictureProblem, Buffer][] = [
      ['nothing', 'empty', Buffer.alloc(0)],
      ['a GIF', 'unsupported_format', Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAA=', 'base64')],
      [
        'an SVG',
        'unsupported_format',
        Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
      ],
      ['a HEIC', 'unsupported_format', Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'latin1')],
      ['a TIFF', 'unsupported_format', Buffer.from('II*\0\x08\0\0\0\0\0', 'latin1')],
      ['text', 'unsupported_format', Buffer.from('not a picture at all')],
      ['a page that calls itself a picture', 'unsupported_format', Buffer.from('<html>PNG</html>')],
      ['a side of 20,000 pixels', 'too_large', makePng(20_000, 10)],
      ['more than 64 megapixels', 'too_large', makePng(8_100, 8_000, { rows: 1 })],
      ['a bomb of 40 gigapixels', 'too_large', makePng(200_000, 200_000, { rows: 1 })],
      ['no pixels', 'damaged', makePng(0, 10, { rows: 0 })],
      ['a row too few', 'damaged', makePng(600, 400, { rows: 399 })],
      ['a row too few of many', 'damaged', makePng(8_000, 8_000, { rows: 7_999 })],
      ['pixels that are no pixels', 'damaged', brokenPixels()],
      ['a moving PNG', 'animated', makePng(8, 8, { before: [pngChunk('acTL', Buffer.alloc(8))] })],
      ['64 pixels and megabytes beside them', 'too_heavy', withLoad(1024 * 1024 + 1024)],
      ['a ZIP behind a PNG', 'polyglot', Buffer.concat([good.png, makeZip()])],
      ['a ZIP within a PNG', 'polyglot', zipWithin()],
      ['a ZIP behind a JPEG', 'polyglot', Buffer.concat([good.jpeg, makeZip()])],
      ['a ZIP behind a WebP', 'polyglot', Buffer.concat([good.webp, makeZip()])],
      ['a ZIP behind the pictures of a camera', 'polyglot', twoPictures(makeZip())],
      ['another JPEG that was not announced', 'polyglot', Buffer.concat([good.jpeg, good.jpeg])],
      ['a page behind a PNG', 'polyglot', Buffer.concat([good.png, Buffer.from('<script>')])],
      ['a PDF within a PNG', 'polyglot', pdfWithin()],
      ['a single byte behind a PNG', 'polyglot', Buffer.concat([good.png, Buffer.from([0])])],
    ];
    for (const [what, problem, bytes] of refused) {
      it(`for ${what}: ${problem}`, async () => {
        expect(await problemOf(bytes)).to.equal(problem);
      });
    }

    it('but not for a profile, texts or a manifest beside them', async () => {
      expect(await inspectPicture(withLoad(900 * 1024))).to.include({ width: 8, height: 8 });
    });

    it('for a moving WebP', async () => {
      const frames = Buffer.alloc(8 * 16 * 3).fill(255, 8 * 8 * 3);
      const moving = await sharp(frames, { raw: { width: 8, height: 16, channels: 3, pageHeight: 8 } })
        .webp({ loop: 0, delay: [50, 50] })
        .toBuffer();
      expect(await problemOf(moving)).to.equal('animated');
    });

    for (const [name, bytes] of Object.entries(good)) {
      it(`for a ${name} that is cut off anywhere`, async () => {
        for (const cut of [1, 2, 5, 12, 13, 40, Math.floor(bytes.length / 2), bytes.length - 13]) {
          expect(await problemOf(bytes.subarray(0, bytes.length - cut)), `${cut} bytes`).to.be.oneOf([
            'damaged',
            'unsupported_format',
          ]);
        }
      });
    }

    it('without unpacking text and colour profiles that would fill the memory', async () => {
      const bomb = deflateSync(Buffer.alloc(200_000_000));
      const before = process.resourceUsage().maxRSS;
      for (const type of ['zTXt', 'iCCP'])
        await inspectPicture(
          makePng(9, 9, { before: [pngChunk(type, Buffer.concat([Buffer.from('a\0\0'), bomb]))] }),
        );
      expect(process.resourceUsage().maxRSS - before).to.be.below(50_000);
    });

    it('for JPEGs of so many scans that they would take minutes', async () => {
      const scan = good['progressive jpeg'].lastIndexOf(Buffer.from([0xff, 0xda]));
      const last = good['progressive jpeg'].subarray(scan, -2);
      const many = Buffer.concat([
        good['progressive jpeg'].subarray(0, -2),
        ...Array.from({ length: 100 }, () => last),
        good['progressive jpeg'].subarray(-2),
      ]);
      expect(await problemOf(many)).to.equal('damaged');
    });
  });

  it('are never opened by a loader that is not for them', async () => {
    const gif = await plain().gif().toBuffer();
    const error = await withSharp(0, async (lent) => lent(gif).png().toBuffer()).catch((thrown) => thrown);
    expect(error).to.be.instanceOf(Error);
  });

  it('are worked on by two at a time, and by one where there are two processors', async () => {
    const gate = Promise.withResolvers<void>();
    let running = 0;
    let most = 0;
    const work = Array.from({ length: 5 }, () =>
      withSharp(0, async () => {
        running += 1;
        most = Math.max(most, running);
        await gate.promise;
        running -= 1;
      }),
    );
    await withSharpBusy(() => running);
    gate.resolve();
    await Promise.all(work);
    expect(most).to.equal(Math.min(2, Math.max(1, availableParallelism() - 1)));
  });

  describe('become others', () => {
    it('in each format, upright and without what the camera wrote', async () => {
      const turned = await plain()
        .withExif({ IFD0: { Copyright: 'somebody' } })
        .withMetadata({ orientation: 6 })
        .jpeg()
        .toBuffer();
      for (const format of ['png', 'jpeg', 'webp'] as const) {
        const made = await encodePicture(turned, { format });
        expect(made).to.include({ contentType: `image/${format}`, width: 40, height: 60 });
        expect(await inspectPicture(made.bytes)).to.include({ format, width: 40, height: 60 });
        expect(made.bytes.includes('somebody')).to.equal(false);
      }
    });

    it('smaller with a lower compression value', async () => {
      const noise = await sharp({
        create: {
          width: 200,
          height: 200,
          channels: 3,
          background: '#000',
          noise: { type: 'gaussian', mean: 128, sigma: 30 },
        },
      })
        .png()
        .toBuffer();
      for (const format of ['jpeg', 'webp'] as const) {
        const sizes = await Promise.all(
          [0, 50, 100].map(
            async (compression) => (await encodePicture(noise, { format, compression })).bytes.length,
          ),
        );
        expect(sizes).to.deep.equal(sizes.toSorted((a, b) => a - b));
      }
    });

    it('on white where they were transparent and cannot be any more', async () => {
      const mask = makeMask(8, 8, { left: 0, top: 0, width: 8, height: 8 });
      const { bytes } = await encodePicture(mask, { format: 'jpeg' });
      expect([...(await sharp(bytes).raw().toBuffer()).subarray(0, 3)]).to.deep.equal([255, 255, 255]);
    });

    it('as previews of at most 512 pixels, marked all over', async () => {
      const { bytes, width, height, contentType } = await makePreview(makePng(1200, 900));
      expect({ width, height, contentType }).to.deep.equal({
        width: 512,
        height: 384,
        contentType: 'image/jpeg',
      });
      // The picture is black: what is bright is the mark, and each ninth of the preview has some.
      for (const left of [0, 171, 341])
        for (const top of [0, 128, 256]) {
          const part = sharp(bytes).extract({ left, top, width: 170, height: 128 });
          const { channels } = await sharp(await part.png().toBuffer()).stats();
          expect(channels[0]?.max).to.be.greaterThan(100);
        }
      expect(await makePreview(makePng(20, 10))).to.include({ width: 20, height: 10 });
    });

    it('as masks of another size without blurred edges', async () => {
      const mask = makeMask(10, 10, { left: 0, top: 0, width: 5, height: 10 });
      const scaled = await matchSize(mask, { width: 33, height: 20 });
      expect(await inspectPicture(scaled)).to.include({ width: 33, height: 20, hasAlpha: true });
      const opacity = await sharp(scaled).extractChannel('alpha').raw().toBuffer();
      expect(new Set(opacity)).to.deep.equal(new Set([0, 255]));
      expect(await matchSize(mask, { width: 10, height: 10 })).to.equal(mask);
    });
  });
});

/** Lets the semaphore start whatever it would. */
async function withSharpBusy(running: () => number): Promise<void> {
  for (let turn = 0; turn < 200 && running() < 2; turn += 1) await new Promise((done) => setImmediate(done));
  for (let turn = 0; turn < 20; turn += 1) await new Promise((done) => setImmediate(done));
}

function brokenPixels(): Buffer {
  const bytes = Buffer.from(makePng(60, 40));
  bytes.fill(0xff, 45, 60);
  return bytes;
}

/** In a chunk of text, with a comment that reaches to the end of the file: ZIP readers find it there. */
function zipWithin(): Buffer {
  const text = Buffer.concat([Buffer.from('Comment\0'), makeZip(4 + 12)]);
  return makePng(9, 9, { behind: [pngChunk('tEXt', text)] });
}

function pdfWithin(): Buffer {
  return makePng(9, 9, { before: [pngChunk('tEXt', Buffer.from('Comment\0%PDF-1.7\n'))] });
}
