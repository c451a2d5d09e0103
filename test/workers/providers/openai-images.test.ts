/** What the OpenAI adapter writes for pictures, and how it reads answers that are not as they should be. */
import { expect } from 'chai';
import { after, afterEach, before, describe, it } from 'mocha';
import type { HttpLimits } from '../../../workers/providers/http-exchange.ts';
import { decodePicture } from '../../../workers/providers/openai/image-answer.ts';
import { makeOpenAiProvider } from '../../../workers/providers/openai/index.ts';
import {
  type ImageCall,
  type ImageEvent,
  type ImageProvider,
  ProviderError,
  type ProviderErrorKind,
} from '../../../workers/providers/provider.ts';
import { type MockUpstream, startMockUpstream } from '../../helpers/mock-upstream.ts';
import { pictureOf } from '../../helpers/mock-upstream-images.ts';
import type { MockBehaviour } from '../../helpers/mock-upstream-wire.ts';
import { makePng } from '../../helpers/pictures.ts';
import { failureOf } from './conformance.ts';
import { collectEvents, orderOf } from './conformance-images.ts';

const CREDENTIAL = 'sk-secret';
const INPUT = { bytes: makePng(9, 9), contentType: 'image/png' };
const JPEG = { bytes: Buffer.from('jpeg bytes'), contentType: 'image/jpeg' };

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

  function images(limits: Partial<HttpLimits> = {}): ImageProvider {
    const provider = makeOpenAiProvider(
      { name: 'mock', kind: 'openai', baseUrl: upstream.baseUrl, credential: CREDENTIAL },
      { closeGraceMs: 0, ...limits },
    );
    closers.push(() => provider.close());
    if (provider.image === undefined) throw new Error('no pictures');
    return provider.image;
  }

  function callOf(changes: Partial<ImageCall> = {}): ImageCall {
    return {
      requestId: 'request-1',
      upstreamModel: 'gpt-image',
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

  async function errorOf(
    behaviour: MockBehaviour,
    how: 'produce' | 'stream' = 'produce',
    changes: Partial<ImageCall> = {},
    limits: Partial<HttpLimits> = {},
  ): Promise<ProviderError> {
    upstream.programNext(behaviour);
    const image = images(limits);
    const call = callOf(changes);
    const error = await failureOf(
      how === 'produce' ? image.produce(call) : collectEvents(image.stream(call)),
    );
    expect(error).to.be.instanceOf(ProviderError);
    return error as ProviderError;
  }

  describe('are asked for', () => {
    it('with nothing that the caller did not say', async () => {
      await images().produce(callOf());
      const call = await upstream.waitForCall();
      expect(call.path).to.equal('/v1/images/generations');
      expect(call.headers.authorization).to.equal(`Bearer ${CREDENTIAL}`);
      expect(call.headers['x-client-request-id']).to.equal('request-1');
      expect(call.body).to.deep.equal({ model: 'gpt-image', prompt: 'A fox', n: 1, size: '8x8' });
    });

    it('with everything that the caller said', async () => {
      await images().produce(
        callOf({
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
        model: 'gpt-image',
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
      await images().produce(callOf({ upstreamModel: 'dall-e-3' }));
      expect((await upstream.waitForCall()).body.response_format).to.equal('b64_json');
    });

    it('as edits in a form, with the pictures and the mask', async () => {
      await images().produce(
        callOf({ images: [INPUT, JPEG], mask: INPUT, inputFidelity: 'high', quality: 'low' }),
      );
      const call = await upstream.waitForCall();
      expect(call.path).to.equal('/v1/images/edits');
      expect(call.headers['content-type']).to.match(/^multipart\/form-data; boundary=/);
      expect(Number(call.headers['content-length'])).to.be.greaterThan(INPUT.bytes.length);
      expect(call.body).to.deep.equal({
        model: 'gpt-image',
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
      await images().produce(callOf({ images: [INPUT] }));
      expect((await upstream.waitForCall()).files.map(({ field }) => field)).to.deep.equal(['image']);
    });

    it('as streams, of generations and of edits', async () => {
      await collectEvents(images().stream(callOf({ partialImages: 2 })));
      const generation = await upstream.waitForCall();
      expect(generation.body).to.include({ stream: true, partial_images: 2 });
      expect(generation.headers.accept).to.equal('text/event-stream');
      const events = await collectEvents(images().stream(callOf({ partialImages: 1, images: [INPUT] })));
      expect((await upstream.waitForCall()).body).to.include({ stream: 'true', partial_images: '1' });
      expect(events.map(orderOf)).to.deep.equal(['0.0', '0']);
    });
  });

  it('carry the prompt as the provider rewrote it, and its usage as it came', async () => {
    upstream.programNext({ images: { revisedPrompt: 'A red fox' }, usage: { total_tokens: 5, extra: [1] } });
    const { images: produced, usage } = await images().produce(callOf());
    expect(produced[0]?.revisedPrompt).to.equal('A red fox');
    expect(usage).to.deep.equal({ total_tokens: 5, extra: [1] });
    upstream.programNext({ usage: 'missing' });
    expect((await images().produce(callOf())).usage).to.equal(undefined);
  });

  it('are passed on whatever their size, which is not for an adapter to judge', async () => {
    upstream.programNext({ images: { size: '4x4' } });
    const { images: produced } = await images().produce(callOf());
    expect(produced[0]?.bytes).to.deep.equal(pictureOf('4x4', 0));
  });

  const failures: [number, MockBehaviour['error'], ProviderErrorKind][] = [
    [400, { message: 'Bad.', param: 'size' }, 'rejected'],
    [400, { code: 'moderation_blocked', type: 'image_generation_user_error' }, 'moderated'],
    [400, { code: 'content_policy_violation' }, 'moderated'],
    [400, { type: 'safety' }, 'moderated'],
    [403, {}, 'misconfigured'],
    [404, {}, 'misconfigured'],
    [413, {}, 'rejected'],
    [429, {}, 'unavailable'],
    [500, {}, 'unavailable'],
  ];
  for (const [status, error, kind] of failures) {
    it(`are ${kind} when the answer is ${status} ${JSON.stringify(error)}`, async () => {
      for (const how of ['produce', 'stream'] as const)
        for (const changes of [{}, { images: [INPUT] }]) {
          const failure = await errorOf({ status, error: error ?? {} }, how, changes);
          expect(failure).to.include({ kind, status, param: error?.param });
        }
    });
  }

  const broken: [string, MockBehaviour][] = [
    ['no pictures', { rawBody: '{"created":1}' }],
    ['an empty list', { images: { count: 0 } }],
    ['one too few', { images: { count: 1 } }],
    ['one too many', { images: { count: 3 } }],
    ['a picture that is no object', { rawBody: '{"data":["a","b"]}' }],
    ['a picture without bytes', { images: { b64: null } }],
    ['an empty picture', { images: { b64: '' } }],
    ['a number for a picture', { images: { b64: 7 } }],
    ['broken base64', { images: { b64: '!!!not base64!!!' } }],
    ['an error page', { rawBody: '<html>Bad gateway</html>', contentType: 'text/html' }],
    ['an error page that calls itself JSON', { rawBody: '<html>Bad gateway</html>' }],
    ['half of the JSON', { rawBody: '{"data":[{"b64_json":"AAAA' }],
    ['an address that is none', { images: { url: 'not an address' } }],
    ['a file of the machine', { images: { url: 'file:///etc/passwd' } }],
    ['an address with a password', { images: { url: 'http://a:b@127.0.0.1/x.png' } }],
    ['the address of a metadata service', { images: { url: 'http://169.254.169.254/latest/' } }],
    ['the same in other clothes', { images: { url: 'http://[::ffff:a9fe:a9fe]/latest/' } }],
  ];
  for (const [what, behaviour] of broken) {
    it(`are an invalid response for ${what}`, async () => {
      const failure = await errorOf(behaviour, 'produce', { count: 2 });
      expect(failure.kind).to.equal('invalid_response');
      expect(failure.isRetryable).to.equal(false);
      expect(failure.isRoutable).to.equal(true);
    });
  }

  it('may be refused under status 200', async () => {
    expect((await errorOf({ rawBody: '{"error":{"code":"moderation_blocked"}}' })).kind).to.equal(
      'moderated',
    );
    expect((await errorOf({ rawBody: '{"error":{"code":502}}' })).kind).to.equal('unavailable');
  });

  describe('in base64', () => {
    it('are decoded exactly, with or without padding, also from a data address', () => {
      for (const bytes of ['a', 'ab', 'abc', 'abcd'].map((text) => Buffer.from(text))) {
        const text = bytes.toString('base64');
        for (const form of [text, text.replace(/=+$/, ''), `data:image/png;base64,${text}`])
          expect(decodePicture(form)).to.deep.equal(bytes);
      }
    });

    it('are refused with anything else in between', () => {
      for (const text of ['A', 'AAAAA', 'AA AA', 'AA=A', 'AAAA!', 'AAAA\nAAAA', '=', '====', 'data:,'])
        expect(() => decodePicture(text), text).to.throw(ProviderError);
    });
  });

  describe('behind addresses', () => {
    it('are fetched, without our credential', async () => {
      upstream.programNext({ images: { url: 'own' } });
      const { images: produced } = await images().produce(callOf({ count: 2 }));
      expect(produced.map(({ bytes }) => bytes)).to.deep.equal([pictureOf('8x8', 0), pictureOf('8x8', 1)]);
    });

    it('may stand in the answer itself', async () => {
      upstream.programNext({ images: { url: `data:image/png;base64,${INPUT.bytes.toString('base64')}` } });
      expect((await images().produce(callOf())).images[0]?.bytes).to.deep.equal(INPUT.bytes);
    });

    it('fail as what their address answers', async () => {
      for (const [status, kind] of [
        [404, 'invalid_response'],
        [302, 'invalid_response'],
        [503, 'unavailable'],
      ] as const) {
        upstream.programNext({ images: { url: 'own' } }, { status });
        const error = (await failureOf(images().produce(callOf()))) as ProviderError;
        expect(error.kind).to.equal(kind);
      }
    });

    it('end with the call, when it is aborted meanwhile', async () => {
      const controller = new AbortController();
      upstream.programNext({ images: { url: 'own' } }, { hang: 'before-headers' });
      const failure = failureOf(images().produce(callOf({ signal: controller.signal })));
      await (await upstream.waitForCall()).finished;
      controller.abort(new Error('gone'));
      expect(await failure).to.have.property('message', 'gone');
    });
  });

  describe('as streams', () => {
    const broken: [string, MockBehaviour, ProviderErrorKind][] = [
      ['that end before the picture', { cutAfterChunks: 1 }, 'invalid_response'],
      ['that end before anything', { cutAfterChunks: 0 }, 'invalid_response'],
      ['that are cut below', { reset: 1 }, 'invalid_response'],
      ['of broken base64', { images: { b64: '???' } }, 'invalid_response'],
      ['that are no streams', { rawBody: '{}', contentType: 'application/json' }, 'invalid_response'],
      [
        'that declined in the middle',
        { errorEvent: { afterChunks: 1, error: { code: 'moderation_blocked' } } },
        'moderated',
      ],
      [
        'that failed in the middle',
        { errorEvent: { afterChunks: 1, error: { code: 'server_error' } } },
        'unavailable',
      ],
    ];
    for (const [what, behaviour, kind] of broken) {
      it(`${what} are ${kind}`, async () => {
        expect((await errorOf(behaviour, 'stream', { partialImages: 2 })).kind).to.equal(kind);
      });
    }

    it('end when the last picture came, although the connection stays open', async () => {
      upstream.programNext({ hang: 3 });
      const events = await collectEvents(images().stream(callOf({ partialImages: 2 })));
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
      const events = await collectEvents(images().stream(callOf({ partialImages: 1 })));
      expect(events.map(orderOf)).to.deep.equal(['0.0', '0']);
      upstream.programNext({ rawBody: ['data: [DONE]\n\n'], contentType: 'text/event-stream' });
      expect(await failureOf(collectEvents(images().stream(callOf())))).to.include({
        kind: 'invalid_response',
      });
    });

    it('give each picture as it comes', async () => {
      const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
      upstream.programNext({ chunkGate: (index) => gates[index - 1]?.promise ?? Promise.resolve() });
      const seen: ImageEvent[] = [];
      for await (const event of images().stream(callOf({ partialImages: 3 }))) {
        seen.push(event);
        gates[seen.length - 1]?.resolve();
      }
      expect(seen).to.have.length(4);
    });

    it('close the upstream connection when aborted or left', async () => {
      const controller = new AbortController();
      upstream.programNext({ hang: 1 }, { hang: 1 });
      const iterator = images()
        .stream(callOf({ partialImages: 2, signal: controller.signal }))
        [Symbol.asyncIterator]();
      await iterator.next();
      controller.abort(new Error('gone'));
      await upstream.waitForAbort();
      expect(await failureOf(iterator.next())).to.have.property('message', 'gone');
      const left = images()
        .stream(callOf({ partialImages: 2 }))
        [Symbol.asyncIterator]();
      await left.next();
      await left.return?.();
      await upstream.waitForAbort();
    });
  });

  it('close the upstream connection when aborted while a form is sent', async () => {
    const controller = new AbortController();
    upstream.programNext({ hang: 'before-headers' });
    const call = callOf({ images: [INPUT], signal: controller.signal });
    const failure = failureOf(images().produce(call));
    await upstream.waitForCall();
    controller.abort(new Error('gone'));
    expect(await failure).to.have.property('message', 'gone');
    await upstream.waitForAbort();
  });
});
