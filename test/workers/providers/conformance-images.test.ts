/** The conformance suite against every image adapter: a new adapter is one more harness here. */
import { makeProvider } from '../../../workers/providers/index.ts';
import type { ImageCall, ProviderErrorKind } from '../../../workers/providers/provider.ts';
import { startMockUpstream } from '../../helpers/mock-upstream.ts';
import type { MockBehaviour } from '../../helpers/mock-upstream-wire.ts';
import { SECRET_CREDENTIAL, SECRET_PROMPT } from './conformance.ts';
import {
  describeImageAdapter,
  type ImageCallChanges,
  type ImageHarness,
  imageCall,
} from './conformance-images.ts';

function callOf(upstreamModel: string, prompt: string, changes: ImageCallChanges = {}): ImageCall {
  return imageCall({ upstreamModel, prompt, size: '64x64', quality: 'low', ...changes });
}

const FAILURES: Readonly<Record<ProviderErrorKind, MockBehaviour>> = {
  unavailable: { status: 503, error: { message: SECRET_PROMPT } },
  moderated: { status: 400, error: { code: 'moderation_blocked', message: SECRET_PROMPT } },
  rejected: {
    status: 400,
    error: { message: `Bad value; your key is ${SECRET_CREDENTIAL}`, param: 'size' },
  },
  misconfigured: { status: 401, error: { message: `Incorrect key ${SECRET_CREDENTIAL}` } },
  invalid_response: { images: { b64: `${SECRET_PROMPT}!` } },
};

describeImageAdapter('openai', async (): Promise<ImageHarness> => {
  const upstream = await startMockUpstream({ credential: SECRET_CREDENTIAL });
  const provider = makeProvider({
    name: 'mock',
    kind: 'openai',
    baseUrl: upstream.baseUrl,
    credential: SECRET_CREDENTIAL,
  });
  upstream.program('hanging', { hang: 'before-headers' });
  upstream.program('fewer', { images: { count: 2 } });
  upstream.program('cut', { cutAfterChunks: 2 });
  for (const [kind, behaviour] of Object.entries(FAILURES)) upstream.program(kind, behaviour);
  return {
    provider,
    answered: (changes) => callOf('good', SECRET_PROMPT, changes),
    hanging: (changes) => callOf('hanging', SECRET_PROMPT, changes),
    fewer: (changes) => callOf('fewer', SECRET_PROMPT, changes),
    cut: (changes) => callOf('cut', SECRET_PROMPT, changes),
    failing: (kind, changes) => callOf(kind, SECRET_PROMPT, changes),
    close: async () => {
      await provider.close();
      await upstream.close();
    },
  };
});

describeImageAdapter('sandbox', async (): Promise<ImageHarness> => {
  const provider = makeProvider({
    name: 'sandbox',
    kind: 'sandbox',
    baseUrl: undefined,
    credential: undefined,
  });
  const call = (directive: string) => (changes?: ImageCallChanges) =>
    callOf('sandbox', `${SECRET_PROMPT} ${directive}`, changes);
  return {
    provider,
    answered: call(''),
    hanging: call('[[sandbox:delay=60000]]'),
    cut: call('[[sandbox:cut]]'),
    failing: (kind, changes) => call(`[[sandbox:error=${kind}]]`)(changes),
    close: () => provider.close(),
  };
});
