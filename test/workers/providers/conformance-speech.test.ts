/** The conformance suite against every speech adapter: a new adapter is one more harness here. */
import { makeProvider } from '../../../workers/providers/index.ts';
import type { ProviderErrorKind, SpeechCall } from '../../../workers/providers/provider.ts';
import { startMockUpstream } from '../../helpers/mock-upstream.ts';
import type { MockBehaviour } from '../../helpers/mock-upstream-wire.ts';
import { SECRET_CREDENTIAL, SECRET_PROMPT } from './conformance.ts';
import {
  describeSpeechAdapter,
  type SpeechCallChanges,
  type SpeechHarness,
  speechCall,
} from './conformance-speech.ts';

const SHARED_FAILURES = {
  unavailable: { status: 503, error: { message: SECRET_PROMPT } },
  invalid_response: { rawBody: `<html>${SECRET_PROMPT}</html>`, contentType: 'text/html' },
} satisfies Record<string, MockBehaviour>;

const OPENAI_FAILURES: Readonly<Record<ProviderErrorKind, MockBehaviour>> = {
  ...SHARED_FAILURES,
  moderated: { status: 400, error: { code: 'content_policy_violation', message: SECRET_PROMPT } },
  rejected: {
    status: 400,
    error: { message: `Bad value; your key is ${SECRET_CREDENTIAL}`, param: 'voice' },
  },
  misconfigured: { status: 401, error: { message: `Incorrect key ${SECRET_CREDENTIAL}` } },
};

const ELEVENLABS_FAILURES: Readonly<Record<ProviderErrorKind, MockBehaviour>> = {
  ...SHARED_FAILURES,
  moderated: { status: 400, error: { status: 'content_against_policy', message: SECRET_PROMPT } },
  rejected: { status: 400, error: { status: 'bad', message: `Your key is ${SECRET_CREDENTIAL}` } },
  misconfigured: { status: 401, error: { status: 'quota_exceeded', message: SECRET_PROMPT } },
};

function describeHttpAdapter(kind: string, failures: Readonly<Record<string, MockBehaviour>>): void {
  describeSpeechAdapter(kind, async (): Promise<SpeechHarness> => {
    const upstream = await startMockUpstream({ credential: SECRET_CREDENTIAL });
    const provider = makeProvider({
      name: 'mock',
      kind,
      baseUrl: upstream.baseUrl,
      credential: SECRET_CREDENTIAL,
    });
    upstream.program('hanging', { hang: 'before-headers' });
    upstream.program('cut', { cutAfterChunks: 3, chunkSpacingMs: 5 });
    for (const [name, behaviour] of Object.entries(failures)) upstream.program(name, behaviour);
    const call =
      (upstreamModel: string) =>
      (changes: SpeechCallChanges = {}): SpeechCall =>
        speechCall({ upstreamModel, text: SECRET_PROMPT, ...changes });
    return {
      provider,
      answered: call('good'),
      hanging: call('hanging'),
      cut: call('cut'),
      failing: (kind, changes) => call(kind)(changes),
      close: async () => {
        await provider.close();
        await upstream.close();
      },
    };
  });
}

describeHttpAdapter('openai', OPENAI_FAILURES);
describeHttpAdapter('elevenlabs', ELEVENLABS_FAILURES);

describeSpeechAdapter('sandbox', async (): Promise<SpeechHarness> => {
  const provider = makeProvider({
    name: 'sandbox',
    kind: 'sandbox',
    baseUrl: undefined,
    credential: undefined,
  });
  const call =
    (directive: string) =>
    (changes: SpeechCallChanges = {}): SpeechCall =>
      speechCall({ ...changes, text: `${changes.text ?? SECRET_PROMPT}${directive}` });
  return {
    provider,
    answered: call(''),
    hanging: call('[[sandbox:delay=60000]]'),
    cut: call('[[sandbox:cut]]'),
    failing: (kind, changes) => call(`[[sandbox:error=${kind}]]`)(changes),
    close: () => provider.close(),
  };
});
