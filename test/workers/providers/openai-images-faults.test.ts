/** How the OpenAI adapter reads answers for pictures that are not as they should be. */
import { expect } from 'chai';
import { after, afterEach, before, describe, it } from 'mocha';
import type { HttpLimits } from '../../../workers/providers/http-exchange.ts';
import { makeOpenAiProvider } from '../../../workers/providers/openai/index.ts';
import {
  type ImageCall,
  type ImageProvider,
  ProviderError,
  type ProviderErrorKind,
} from '../../../workers/providers/provider.ts';
import { type MockUpstream, startMockUpstream } from '../../helpers/mock-upstream.ts';
import type { MockBehaviour } from '../../helpers/mock-upstream-wire.ts';
import { inputOf, makePng } from '../../helpers/pictures.ts';
import { failureOf } from './conformance.ts';
import { collectEvents, imageCall } from './conformance-images.ts';

const CREDENTIAL = 'sk-secret';
const INPUT = inputOf(makePng(9, 9), 'image/png');

describe('the openai adapter’s pictures, when the upstream misbehaves', () => {
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

  async function errorOf(
    behaviour: MockBehaviour,
    how: 'produce' | 'stream' = 'produce',
    changes: Partial<ImageCall> = {},
    limits: Partial<HttpLimits> = {},
  ): Promise<ProviderError> {
    upstream.programNext(behaviour);
    const image = images(limits);
    const call = imageCall(changes);
    const error = await failureOf(
      how === 'produce' ? image.produce(call) : collectEvents(image.stream(call)),
    );
    expect(error).to.be.instanceOf(ProviderError);
    return error as ProviderError;
  }

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

  it('are unavailable when the upstream is silent, before its headers and in the middle', async () => {
    const limits = { headersTimeoutMs: 50, idleTimeoutMs: 50 };
    expect((await errorOf({ hang: 'before-headers' }, 'produce', {}, limits)).kind).to.equal('unavailable');
    expect((await errorOf({ hang: 1 }, 'stream', { partialImages: 2 }, limits)).kind).to.equal('unavailable');
  });

  describe('as streams', () => {
    it('that are cut below, or end in the middle of the next, after the first of two are no answer of one', async () => {
      for (const behaviour of [{ reset: 2 }, { cutAfterChunks: 3 }])
        expect((await errorOf(behaviour, 'stream', { partialImages: 1, count: 2 })).kind).to.equal(
          'invalid_response',
        );
    });

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
  });
});
