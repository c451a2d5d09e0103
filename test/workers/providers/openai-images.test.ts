/** What the OpenAI adapter writes for pictures, and what it makes of good answers in all their forms. */
import { expect } from 'chai';
import { after, afterEach, before, describe, it } from 'mocha';
import { decodePicture } from '../../../workers/providers/openai/image-answer.ts';
import { makeOpenAiProvider } from '../../../workers/providers/openai/index.ts';
import { type ImageEvent, type ImageProvider, ProviderError } from '../../../workers/providers/provider.ts';
import { type MockUpstream, startMockUpstream } from '../../helpers/mock-upstream.ts';
import { pictureOf } from '../../helpers/mock-upstream-images.ts';
import { inputOf, makePng } from '../../helpers/pictures.ts';
import { failureOf } from './conformance.ts';
import { collectEvents, imageCall, orderOf } from './conformance-images.ts';

const CREDENTIAL = 'sk-secret';
const INPUT = inputOf(makePng(9, 9), 'image/png');
const JPEG = inputOf(Buffer.from('jpeg bytes'), 'image/jpeg');

describe('the openai adapter’s pictures', () => {
  let upstream: MockUpstream;
  const closers: (() => Promise<void>)[] = [];

  before(async () => {
    upstream = await startMockUpstream();
  });
  afterEach(() => upstream.reset());
  after(async () => {
    await upstream.close();
    await Promise.all(closers.map((close) => close()));
  });

  function images(): ImageProvider {
    const provider = makeOpenAiProvider(
      { name: 'mock', kind: 'openai', baseUrl: upstream.baseUrl, credential: CREDENTIAL },
      { closeGraceMs: 0 },
    );
    closers.push(() => provider.close());
    if (provider.image === undefined) throw new Error('no pictures');
    return provider.image;
  }

  describe('are asked for', () => {
    it('with nothing that the caller did not say', async () => {
      await images().produce(imageCall());
      const call = await upstream.waitForCall();
      expect(call.path).to.equal('/v1/images/generations');
      expect(call.headers.authorization).to.equal(`Bearer ${CREDENTIAL}`);
      expect(call.headers['x-client-request-id']).to.equal(imageCall().requestId);
      expect(call.body).to.deep.equal({ model: 'u', prompt: 'A fox', n: 1, size: '8x8' });
    });

    it('with everything that the caller said', async () => {
      await images().produce(
        imageCall({
          count: 2,
          quality: 'high',
          background: 'opaque',
          outputFormat: 'webp',
          outputCompression: 70,
          moderation: 'low',
          user: 'u1',
          seed: 5,
        }),
      );
      expect((await upstream.waitForCall()).body).to.deep.equal({
        model: 'u',
        prompt: 'A fox',
        n: 2,
        size: '8x8',
        quality: 'high',
        background: 'opaque',
        output_format: 'webp',
        output_compression: 70,
        moderation: 'low',
        user: 'u1',
        seed: 5,
      });
    });

    it('as bytes from models that would answer addresses', async () => {
      await images().produce(imageCall({ upstreamModel: 'dall-e-3' }));
      expect((await upstream.waitForCall()).body.response_format).to.equal('b64_json');
    });

    it('as edits in a form, with the pictures and the mask', async () => {
      await images().produce(
        imageCall({ images: [INPUT, JPEG], mask: INPUT, inputFidelity: 'high', quality: 'low' }),
      );
      const call = await upstream.waitForCall();
      expect(call.path).to.equal('/v1/images/edits');
      expect(call.headers['content-type']).to.match(/^multipart\/form-data; boundary=/);
      expect(Number(call.headers['content-length'])).to.be.greaterThan(INPUT.bytes.length);
      expect(call.body).to.deep.equal({
        model: 'u',
        prompt: 'A fox',
        n: '1',
        size: '8x8',
        quality: 'low',
        input_fidelity: 'high',
      });
      expect(call.files).to.deep.equal([
        { field: 'image[]', name: 'image-0.png', type: 'image/png', bytes: INPUT.bytes },
        { field: 'image[]', name: 'image-1.jpeg', type: 'image/jpeg', bytes: JPEG.bytes },
        { field: 'mask', name: 'mask.png', type: 'image/png', bytes: INPUT.bytes },
      ]);
      await images().produce(imageCall({ images: [INPUT] }));
      expect((await upstream.waitForCall()).files.map(({ field }) => field)).to.deep.equal(['image']);
    });

    it('as streams, of generations and of edits', async () => {
      await collectEvents(images().stream(imageCall({ partialImages: 2 })));
      const generation = await upstream.waitForCall();
      expect(generation.body).to.include({ stream: true, partial_images: 2 });
      expect(generation.headers.accept).to.equal('text/event-stream');
      const events = await collectEvents(images().stream(imageCall({ partialImages: 1, images: [INPUT] })));
      expect((await upstream.waitForCall()).body).to.include({ stream: 'true', partial_images: '1' });
      expect(events.map(orderOf)).to.deep.equal(['0.0', '0']);
    });
  });

  it('carry the prompt as the provider rewrote it, and its usage as it came', async () => {
    upstream.programNext({ images: { revisedPrompt: 'A red fox' }, usage: { total_tokens: 5, extra: [1] } });
    const { images: produced, usage } = await images().produce(imageCall());
    expect(produced[0]?.revisedPrompt).to.equal('A red fox');
    expect(usage).to.deep.equal({ total_tokens: 5, extra: [1] });
    upstream.programNext({ usage: 'missing' });
    expect((await images().produce(imageCall())).usage).to.equal(undefined);
  });

  it('are passed on whatever their size, which is not for an adapter to judge', async () => {
    upstream.programNext({ images: { size: '4x4' } });
    const { images: produced } = await images().produce(imageCall());
    expect(produced[0]?.bytes).to.deep.equal(pictureOf('4x4', 0));
  });

  describe('in base64', () => {
    it('are decoded exactly, with or without padding, in lines, also from a data address', () => {
      for (const bytes of ['a', 'ab', 'abc', 'abcd'].map((text) => Buffer.from(text))) {
        const text = bytes.toString('base64');
        for (const form of [text, text.replace(/=+$/, ''), `${text}\n`, `data:image/png;base64,${text}`])
          expect(decodePicture(form)).to.deep.equal(bytes);
      }
    });

    it('are refused with anything else in between', () => {
      for (const text of ['A', 'AAAAA', 'AA=A', 'AAAA!', 'AA*AA', '=', '====', 'data:,'])
        expect(() => decodePicture(text), text).to.throw(ProviderError);
    });
  });

  describe('behind addresses', () => {
    it('are fetched, without our credential', async () => {
      upstream.programNext({ images: { url: 'own' } });
      const { images: produced } = await images().produce(imageCall({ count: 2 }));
      expect(produced.map(({ bytes }) => bytes)).to.deep.equal([pictureOf('8x8', 0), pictureOf('8x8', 1)]);
    });

    it('may stand in the answer itself', async () => {
      upstream.programNext({ images: { url: `data:image/png;base64,${INPUT.bytes.toString('base64')}` } });
      expect((await images().produce(imageCall())).images[0]?.bytes).to.deep.equal(INPUT.bytes);
    });

    it('fail as what their address answers', async () => {
      for (const [status, kind] of [
        [404, 'invalid_response'],
        [302, 'invalid_response'],
        [503, 'unavailable'],
      ] as const) {
        upstream.programNext({ images: { url: 'own' } }, { status });
        const error = (await failureOf(images().produce(imageCall()))) as ProviderError;
        expect(error.kind).to.equal(kind);
      }
    });

    it('end with the call, when it is aborted meanwhile', async () => {
      const controller = new AbortController();
      upstream.programNext({ images: { url: 'own' } }, { hang: 'before-headers' });
      const failure = failureOf(images().produce(imageCall({ signal: controller.signal })));
      await (await upstream.waitForCall()).finished;
      controller.abort(new Error('gone'));
      expect(await failure).to.have.property('message', 'gone');
    });
  });

  describe('as streams', () => {
    it('end when the last picture came, although the connection stays open', async () => {
      upstream.programNext({ hang: 3 });
      const events = await collectEvents(images().stream(imageCall({ partialImages: 2 })));
      expect(events.map(orderOf)).to.deep.equal(['0.0', '0.1', '0']);
    });

    it('take `[DONE]` and events of other kinds for what they are', async () => {
      const picture = INPUT.bytes.toString('base64');
      const event = (fields: object) => `data: ${JSON.stringify(fields)}\n\n`;
      upstream.programNext({
        rawBody: [
          ': keep-alive\n\n',
          event({ type: 'image_generation.in_progress' }),
          event({ type: 'image_generation.partial_image', partial_image_index: 0, b64_json: picture }),
          event({ type: 'image_generation.partial_image', partial_image_index: 1, b64_json: picture }),
          event({ type: 'image_generation.completed', b64_json: picture }),
          'data: [DONE]\n\n',
        ],
      });
      const events = await collectEvents(images().stream(imageCall({ partialImages: 1 })));
      expect(events.map(orderOf)).to.deep.equal(['0.0', '0']);
      upstream.programNext({ rawBody: ['data: [DONE]\n\n'], contentType: 'text/event-stream' });
      expect(await failureOf(collectEvents(images().stream(imageCall())))).to.include({
        kind: 'invalid_response',
      });
    });

    it('give each picture as it comes', async () => {
      const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
      upstream.programNext({ chunkGate: (index) => gates[index - 1]?.promise ?? Promise.resolve() });
      const seen: ImageEvent[] = [];
      for await (const event of images().stream(imageCall({ partialImages: 3 }))) {
        seen.push(event);
        gates[seen.length - 1]?.resolve();
      }
      expect(seen).to.have.length(4);
    });

    it('close the upstream connection when aborted or left', async () => {
      const controller = new AbortController();
      upstream.programNext({ hang: 1 }, { hang: 1 });
      const iterator = images()
        .stream(imageCall({ partialImages: 2, signal: controller.signal }))
        [Symbol.asyncIterator]();
      await iterator.next();
      controller.abort(new Error('gone'));
      await upstream.waitForAbort();
      expect(await failureOf(iterator.next())).to.have.property('message', 'gone');
      const left = images()
        .stream(imageCall({ partialImages: 2 }))
        [Symbol.asyncIterator]();
      await left.next();
      await left.return?.();
      await upstream.waitForAbort();
    });
  });

  it('close the upstream connection when aborted while a form is sent', async () => {
    const controller = new AbortController();
    upstream.programNext({ hang: 'before-headers' });
    const call = imageCall({ images: [INPUT], signal: controller.signal });
    const failure = failureOf(images().produce(call));
    await upstream.waitForCall();
    controller.abort(new Error('gone'));
    expect(await failure).to.have.property('message', 'gone');
    await upstream.waitForAbort();
  });
});
