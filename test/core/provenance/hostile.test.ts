/** Files made to break or to exhaust whoever inspects them: answered honestly, soon, and without growing. */
import { PNG } from '@trustnxt/c2pa-ts/asset';
import { ThumbnailAssertion, ThumbnailType } from '@trustnxt/c2pa-ts/manifest';
import { encode } from 'cbor-x';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import sharp from 'sharp';
import type { Inspection } from '../../../core/provenance/inspection.ts';
import { type Inspector, makeInspector } from '../../../core/provenance/inspector.ts';
import { findManifests } from '../../../core/provenance/picture-parts.ts';
import { makeIdentityConfig, makePicture, makeSigned } from '../../helpers/c2pa.ts';
import { newDraft, sealed } from '../../helpers/c2pa-draft.ts';
import { box, description, manifestStore } from '../../helpers/jumbf.ts';
import { makePng, pngChunk } from '../../helpers/pictures.ts';

const MEBIBYTE = 1024 * 1024;
const LIMIT_BYTES = 25 * MEBIBYTE;

describe('an inspection', () => {
  let config: Awaited<ReturnType<typeof makeIdentityConfig>>;
  let inspector: Inspector;
  before(async () => {
    config = await makeIdentityConfig();
    inspector = makeInspector(config);
  });
  after(() => inspector.close());

  const inspect = async (bytes: Buffer): Promise<Inspection> => {
    const inspection = await inspector.inspect(bytes);
    if (inspection === undefined) throw new Error('no picture');
    return inspection;
  };
  const withStore = (jumbf: Buffer) => makePng(4, 4, { before: [pngChunk('caBX', jumbf)] });
  const codesOf = ({ problems }: Inspection) => problems.map(({ code }) => code);

  it('of what is no PNG, JPEG or WebP says so', async () => {
    const gif = Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=', 'base64');
    for (const bytes of [
      gif,
      Buffer.from('hello'),
      Buffer.alloc(0),
      Buffer.from([0xff, 0xd8]),
      Buffer.from('RIFF'),
    ])
      expect(await inspector.inspect(bytes)).to.equal(undefined);
  });

  it('of a WebP tells whether a manifest is there, and that it was not checked', async () => {
    const webp = await sharp({ create: { width: 9, height: 9, channels: 3, background: 'red' } })
      .webp()
      .toBuffer();
    expect(await inspect(webp)).to.deep.include({ format: 'webp', has_manifest: false, problems: [] });
    const store = manifestStore();
    const size = Buffer.alloc(4);
    size.writeUInt32LE(store.length);
    const marked = Buffer.concat([webp, Buffer.from('C2PA'), size, store, Buffer.alloc(store.length % 2)]);
    const inspection = await inspect(marked);
    expect(inspection).to.deep.include({ has_manifest: true, valid: null, hashes: { valid: null } });
    expect(inspection.signature).to.deep.include({ valid: null, signed_by_this_service: null });
    expect(codesOf(inspection)).to.deep.equal(['format.unsupported']);
  });

  const lying = (box_: Buffer, length: number): Buffer => {
    box_.writeUInt32BE(length, 0);
    return box_;
  };
  const hidden = box('jumb', description('c2ma', 'hidden'));
  const MALFORMED: Readonly<Record<string, () => Buffer>> = {
    'nothing at all': () => Buffer.alloc(0),
    'a box of length 0': () => manifestStore(lying(box('cbor'), 0)),
    'a box of length 1': () => manifestStore(lying(box('cbor'), 1)),
    'a box of length 7': () => manifestStore(lying(box('cbor'), 7)),
    'a box longer than what it is in': () => manifestStore(lying(box('cbor'), 100)),
    'a box of 4 GB': () => manifestStore(lying(box('jumb'), 0xffffffff)),
    'a store of 4 GB': () => lying(manifestStore(), 0xffffffff),
    'a store shorter than it is': () => lying(manifestStore(Buffer.alloc(8)), 20),
    'half a box': () => manifestStore(Buffer.from([0, 0, 0])),
    'a label without an end': () =>
      box('jumb', box('jumd', Buffer.alloc(16), Buffer.from([2]), Buffer.from('c2pa'))),
    'a box hidden in a description': () =>
      box('jumb', box('jumd', description('c2pa', 'c2pa').subarray(8), hidden)),
    'a description cut short': () => box('jumb', box('jumd', Buffer.alloc(5))),
    'no description': () => box('jumb', box('cbor', encode({}))),
    'a UUID box too small': () => manifestStore(box('uuid', Buffer.alloc(3))),
    'a file description without an end': () => manifestStore(box('bfdb', Buffer.from([1, 65, 66]))),
    'an empty store': () => manifestStore(),
    'an empty manifest': () => manifestStore(box('jumb', description('c2ma', 'urn:c2pa:x'))),
    'CBOR cut short': () => manifestStore(box('cbor', Buffer.from([0x9a, 0xff, 0xff, 0xff, 0xff]))),
    'CBOR 500,000 deep': () => manifestStore(box('cbor', Buffer.alloc(500_000, 0x81))),
    'JSON 500,000 deep': () => manifestStore(box('json', Buffer.alloc(500_000, '['))),
    'a claim that is no claim': () =>
      manifestStore(
        box(
          'jumb',
          description('c2ma', 'urn:c2pa:x'),
          ...[null, 1, [], 'x', { created_assertions: 7 }].map((claim) =>
            box('jumb', description('c2cl', 'c2pa.claim.v2'), box('cbor', encode(claim))),
          ),
        ),
      ),
  };
  for (const [what, make] of Object.entries(MALFORMED)) {
    it(`of a manifest with ${what} says that it cannot be read`, async () => {
      const jumbf = make();
      for (const bytes of [withStore(jumbf), withJumbfInJpeg(jumbf)]) {
        const parts = findManifests(bytes);
        const inspection = await inspect(bytes);
        // a JPEG's segments carry boxes of every kind: only a manifest store is one
        if (parts?.manifests.length === 0) expect(inspection.has_manifest).to.equal(false);
        else expect(inspection).to.deep.include({ has_manifest: true, valid: false });
        expect(inspection.signature.valid).to.not.equal(true);
      }
    });
  }

  const TOO_MUCH: Readonly<Record<string, () => Buffer>> = {
    '100 boxes in each other': () => nested(100),
    '100 boxes in each other, in private fields': () => {
      let inner = box('free');
      for (let depth = 0; depth < 100; depth += 1)
        inner = box('jumb', box('jumd', Buffer.alloc(16), Buffer.from([16]), inner));
      return manifestStore(inner);
    },
    '100,000 boxes': () => manifestStore(Buffer.alloc(800_000, box('free'))),
    '20 MB': () => manifestStore(box('free', Buffer.alloc(20 * MEBIBYTE))),
    '2 MB of empty lists': () => manifestStore(box('cbor', Buffer.alloc(2 * MEBIBYTE, 0x80))),
  };
  for (const [what, make] of Object.entries(TOO_MUCH)) {
    it(`of a manifest with ${what} says that it was not checked, and soon`, async () => {
      const bytes = withStore(make());
      await inspect(withStore(manifestStore())); // the thread is there
      const startedAt = performance.now();
      const inspection = await inspect(bytes);
      expect(performance.now() - startedAt).to.be.below(1000);
      expect(inspection).to.deep.include({ has_manifest: true, valid: null });
      expect(codesOf(inspection)).to.deep.equal(['manifest.too_large']);
    });
  }

  it('of a file in too many parts ends early', async () => {
    const chunks = Buffer.alloc(LIMIT_BYTES - 100, pngChunk('tEXt', Buffer.alloc(0)));
    const segments = Buffer.alloc(LIMIT_BYTES - 100, Buffer.from([0xff, 0xeb, 0, 2]));
    const boxes = Buffer.alloc(LIMIT_BYTES - 100, appSegment(1, 1, manifestStore()));
    for (const bytes of [
      makePng(4, 4, { before: [chunks] }),
      Buffer.concat([Buffer.from([0xff, 0xd8]), segments]),
      Buffer.concat([Buffer.from([0xff, 0xd8]), boxes]),
    ]) {
      const startedAt = performance.now();
      const inspection = await inspect(bytes);
      expect(performance.now() - startedAt).to.be.below(1000);
      expect(codesOf(inspection)).to.include('file.malformed');
      expect(inspection.valid).to.not.equal(true);
    }
  });

  it('that would take minutes is given up, and the next one is served', async () => {
    const impatient = makeInspector(config, { timeoutMs: 1500 });
    try {
      const honest = await makeSigned(config, 'png');
      const costly = await makeCostly();
      expect(costly.length).to.be.below(LIMIT_BYTES);
      expect((await impatient.inspect(honest))?.valid).to.equal(true); // its thread is there
      const startedAt = performance.now();
      const [first, second] = await Promise.all([costly, honest].map((bytes) => impatient.inspect(bytes)));
      expect(performance.now() - startedAt).to.be.within(1400, 5000);
      expect(first).to.deep.include({ has_manifest: true, valid: null });
      expect(first?.problems.map(({ code }) => code)).to.deep.equal(['manifest.too_large']);
      expect(second?.valid).to.equal(true);
    } finally {
      await impatient.close();
    }
  }).timeout(60_000);

  it('answers with a bounded part of what a manifest says', async () => {
    const draft = await newDraft(config);
    draft.claim.title = 'x'.repeat(300_000);
    const jumbf = await sealed(draft, new PNG(await makePicture('png')));
    const inspection = await inspect(jumbf);
    expect(inspection.title?.length).to.be.below(600);
    expect(JSON.stringify(inspection).length).to.be.below(10_000);

    const wide = manifestOf(
      Array.from({ length: 50_000 }, (_, index) => ({ [`name ${index}`]: 'y'.repeat(9) })),
    );
    expect(JSON.stringify(await inspect(withStore(wide))).length).to.be.below(200_000);
  });

  it('finds a manifest in several segments of a JPEG, and what lies between them', () => {
    const jumbf = manifestStore(box('free', Buffer.alloc(100_000, 7)));
    const halves = [
      jumbf.subarray(0, 50_000),
      Buffer.concat([jumbf.subarray(0, 8), jumbf.subarray(50_000)]),
    ] as const;
    const file = (...parts: readonly Buffer[]) =>
      findManifests(Buffer.concat([Buffer.from([0xff, 0xd8]), ...parts, Buffer.from([0xff, 0xd9])]))
        ?.manifests ?? [];
    const comment = Buffer.from([0xff, 0xfe, 0, 4, 65, 66]);
    const [first, second] = [appSegment(1, 1, halves[0]), appSegment(1, 2, halves[1])];
    const [whole] = file(comment, first, second, comment);
    expect(whole?.fault).to.equal(undefined);
    expect(Buffer.from(whole?.jumbf ?? []).equals(jumbf)).to.equal(true);
    expect([whole?.start, whole?.length]).to.deep.equal([2 + 6, first.length + second.length]);
    expect(file(first, comment, second)[0]?.fault).to.match(/between/);
    expect(file(first, appSegment(1, 3, halves[1]))[0]?.fault).to.match(/order/);
    expect(file(first)[0]?.fault).to.match(/add up/);
    expect(file(first, second, appSegment(2, 1, manifestStore()))).to.have.length(2);
    expect(file(appSegment(1, 1, box('jumb', description('json', 'another kind of box'))))).to.deep.equal([]);
  });

  /** A claim that names one large assertion thousands of times, each of which is to be hashed. */
  async function makeCostly(): Promise<Buffer> {
    const draft = await newDraft(config);
    draft.manifest.addAssertion(
      ThumbnailAssertion.create('jpeg', new Uint8Array(9 * MEBIBYTE), ThumbnailType.Claim),
    );
    const [reference] = draft.claim.assertions;
    if (reference === undefined) throw new Error('no reference');
    for (let count = 0; count < 8000; count += 1) draft.claim.assertions.push(reference);
    return sealed(draft, new PNG(await makePicture('png')));
  }
});

function nested(depth: number): Buffer {
  let inner = box('jumb', description('c2ma', 'x'));
  for (let count = 0; count < depth; count += 1) inner = box('jumb', description('c2ma', 'x'), inner);
  return manifestStore(inner);
}

/** A manifest of one assertion, unsigned. */
function manifestOf(content: unknown): Buffer {
  return manifestStore(
    box(
      'jumb',
      description('c2ma', 'urn:c2pa:x'),
      box(
        'jumb',
        description('c2as', 'c2pa.assertions'),
        box('jumb', description('cbor', 'wide'), box('cbor', encode(content))),
      ),
      box(
        'jumb',
        description('c2cl', 'c2pa.claim.v2'),
        box('cbor', encode({ instanceID: 'x', created_assertions: [] })),
      ),
    ),
  );
}

function appSegment(instance: number, sequence: number, content: Buffer): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(0xffeb, 0);
  header.writeUInt16BE(10 + content.length, 2);
  header.write('JP', 4, 'latin1');
  header.writeUInt16BE(instance, 6);
  header.writeUInt32BE(sequence, 8);
  return Buffer.concat([header, content]);
}

function withJumbfInJpeg(jumbf: Buffer): Buffer {
  const isShort = jumbf.length < 60_000;
  const segment = appSegment(1, 1, isShort ? jumbf : manifestStore());
  return Buffer.concat([Buffer.from([0xff, 0xd8]), segment, Buffer.from([0xff, 0xd9])]);
}
