/**
 * What every image adapter must do, run against each of them by `conformance-images.test.ts`. An adapter brings a harness
 * that makes its kinds of calls; the sentences here are the contract of `workers/providers/provider.ts`.
 */
import { inspect } from 'node:util';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { inspectPicture } from '../../../core/pictures.ts';
import {
  type ImageCall,
  type ImageEvent,
  type Provider,
  ProviderError,
  type ProviderErrorKind,
} from '../../../workers/providers/provider.ts';
import { inputOf, makeMask, makePng } from '../../helpers/pictures.ts';
import { failureOf, SECRET_CREDENTIAL, SECRET_PROMPT } from './conformance.ts';

export type ImageCallChanges = Partial<ImageCall>;

export interface ImageHarness {
  readonly provider: Provider;
  /** Answered with the pictures asked for. */
  answered(changes?: ImageCallChanges): ImageCall;
  /** Answered with two pictures, whatever is asked for; none where the provider always has all of them. */
  fewer?(changes?: ImageCallChanges): ImageCall;
  /** Never answered, not even its headers. */
  hanging(changes?: ImageCallChanges): ImageCall;
  /** Streamed: breaks off after one partial picture at least. */
  cut(changes?: ImageCallChanges): ImageCall;
  failing(kind: ProviderErrorKind, changes?: ImageCallChanges): ImageCall;
  close(): Promise<void>;
}

const KINDS = ['unavailable', 'moderated', 'rejected', 'misconfigured', 'invalid_response'] as const;
const INPUT = inputOf(makePng(96, 64, { rgb: [10, 200, 30] }), 'image/png');
const INPUT_MASK = inputOf(makeMask(96, 64, { left: 8, top: 8, width: 40, height: 40 }), 'image/png');

export function describeImageAdapter(name: string, makeHarness: () => Promise<ImageHarness>): void {
  describe(`the ${name} image adapter`, () => {
    let harness: ImageHarness;
    const image = () => {
      if (harness.provider.image === undefined) throw new Error('The provider has no pictures.');
      return harness.provider.image;
    };

    before(async () => {
      harness = await makeHarness();
    });
    after(() => harness.close());

    it('gives as many whole pictures as asked for, of the asked size, with usage', async () => {
      for (const count of [1, 3]) {
        const { images, usage } = await image().produce(harness.answered({ count, size: '96x64' }));
        expect(images).to.have.length(count);
        for (const { bytes } of images)
          expect(await inspectPicture(bytes)).to.include({ width: 96, height: 64, format: 'png' });
        expect(new Set(images.map(({ bytes }) => bytes.toString('base64'))).size).to.equal(count);
        expect(usage?.total_tokens).to.be.greaterThan(0);
      }
    });

    it('gives fewer pictures where the provider has fewer, whole and streamed', async () => {
      if (harness.fewer === undefined) return;
      const { images } = await image().produce(harness.fewer({ count: 3 }));
      expect(images).to.have.length(2);
      const events = await collectEvents(image().stream(harness.fewer({ count: 3, partialImages: 1 })));
      expect(events.map(orderOf)).to.deep.equal(['0.0', '0', '1.0', '1']);
    });

    it('streams partial pictures before each finished one, in order', async () => {
      const call = harness.answered({ count: 2, partialImages: 2, size: '96x64' });
      const events = await collectEvents(image().stream(call));
      expect(events.map(orderOf)).to.deep.equal(['0.0', '0.1', '0', '1.0', '1.1', '1']);
      for (const event of events)
        expect(await inspectPicture(bytesOf(event))).to.include({ width: 96, height: 64 });
      expect(bytesOf(events[0])).to.not.deep.equal(bytesOf(events[1]));
      const last = events.at(-1);
      expect(last?.kind === 'image' && last.usage?.total_tokens).to.be.greaterThan(0);
    });

    it('streams only finished pictures when no partial one is asked for', async () => {
      const events = await collectEvents(image().stream(harness.answered({ partialImages: 0 })));
      expect(events.map(orderOf)).to.deep.equal(['0']);
    });

    it('streams the same picture that it gives whole', async () => {
      const { images } = await image().produce(harness.answered());
      const events = await collectEvents(image().stream(harness.answered({ partialImages: 1 })));
      expect(bytesOf(events.at(-1))).to.deep.equal(images[0]?.bytes);
    });

    it('edits one or several pictures, with and without a mask, whole and streamed', async () => {
      for (const changes of [
        { images: [INPUT] },
        { images: [INPUT, INPUT], mask: INPUT_MASK },
      ] as ImageCallChanges[]) {
        const call = harness.answered({ ...changes, size: '96x64' });
        const { images } = await image().produce(call);
        expect(await inspectPicture(images[0]?.bytes ?? Buffer.alloc(0))).to.include({ width: 96 });
        const events = await collectEvents(image().stream({ ...call, partialImages: 1 }));
        expect(events.map(orderOf)).to.deep.equal(['0.0', '0']);
      }
    });

    it('leaves the call it was given as it was', async () => {
      const call = harness.answered({ images: [INPUT], mask: INPUT_MASK, partialImages: 1 });
      const shown = () => inspect(call, { depth: 10 });
      const before = shown();
      await image().produce(call);
      await collectEvents(image().stream(call));
      expect(shown()).to.equal(before);
    });

    for (const kind of KINDS) {
      it(`throws ${kind} when it is so, whole and streamed, and shows no prompt and no credential`, async () => {
        for (const attempt of [
          () => image().produce(harness.failing(kind)),
          () => collectEvents(image().stream(harness.failing(kind))),
        ]) {
          const error = await failureOf(attempt());
          expect(error).to.be.instanceOf(ProviderError);
          expect((error as ProviderError).kind).to.equal(kind);
          const shown = inspect(error, { depth: 10, showHidden: true });
          expect(shown).to.not.include(SECRET_PROMPT);
          expect(shown).to.not.include(SECRET_CREDENTIAL);
        }
      });
    }

    it('throws when a stream breaks off, after the pictures that came', async () => {
      const received: ImageEvent[] = [];
      const error = await failureOf(
        (async () => {
          for await (const event of image().stream(harness.cut({ partialImages: 2 }))) received.push(event);
        })(),
      );
      expect((error as ProviderError).kind).to.equal('invalid_response');
      expect(received).to.not.be.empty;
    });

    it('rethrows the reason of a signal that was aborted before', async () => {
      const reason = new Error('The client went away.');
      const changes = { signal: AbortSignal.abort(reason) };
      expect(await failureOf(image().produce(harness.answered(changes)))).to.equal(reason);
      expect(await failureOf(collectEvents(image().stream(harness.answered(changes))))).to.equal(reason);
    });

    it('rethrows the reason within a second when aborted while waiting', async () => {
      for (const run of [
        (call: ImageCall) => image().produce(call),
        (call: ImageCall) => collectEvents(image().stream(call)),
      ]) {
        const controller = new AbortController();
        const reason = new Error('The deadline passed.');
        const failure = failureOf(run(harness.hanging({ signal: controller.signal })));
        setImmediate(() => controller.abort(reason));
        const abortedAt = performance.now();
        expect(await failure).to.equal(reason);
        expect(performance.now() - abortedAt).to.be.below(1_000);
      }
    });

    it('rethrows the reason when aborted in the middle of a stream', async () => {
      const controller = new AbortController();
      const reason = new Error('Cancelled.');
      const call = harness.answered({ signal: controller.signal, partialImages: 3, count: 4 });
      const iterator = image().stream(call)[Symbol.asyncIterator]();
      await iterator.next();
      controller.abort(reason);
      const error = await failureOf(
        (async () => {
          while ((await iterator.next()).done !== true);
        })(),
      );
      expect(error).to.equal(reason);
      expect((await iterator.next()).done).to.equal(true);
    });

    it('ends quietly when the reader stops', async () => {
      const iterator = image()
        .stream(harness.answered({ partialImages: 2 }))
        [Symbol.asyncIterator]();
      await iterator.next();
      expect((await iterator.return?.())?.done).to.equal(true);
      expect((await iterator.next()).done).to.equal(true);
    });
  });
}

/** A call for one small picture, with nothing said that need not be. */
export function imageCall(changes: ImageCallChanges = {}): ImageCall {
  return {
    requestId: '018f0000-0000-7000-8000-000000000001',
    upstreamModel: 'u',
    signal: new AbortController().signal,
    prompt: 'A fox',
    count: 1,
    size: '8x8',
    quality: undefined,
    outputFormat: 'png',
    partialImages: 0,
    images: [],
    mask: undefined,
    ...changes,
  };
}

export async function collectEvents(stream: AsyncIterable<ImageEvent>): Promise<ImageEvent[]> {
  const events: ImageEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

export function orderOf(event: ImageEvent): string {
  return event.kind === 'partial' ? `${event.index}.${event.partialIndex}` : `${event.index}`;
}

export function bytesOf(event: ImageEvent | undefined): Buffer {
  if (event === undefined) throw new Error('There is no such event.');
  return event.kind === 'partial' ? event.bytes : event.image.bytes;
}
