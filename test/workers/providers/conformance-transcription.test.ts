/** The conformance suite against every transcription adapter: a new adapter is one more harness here. */
import { makeProvider } from '../../../workers/providers/index.ts';
import type { ProviderErrorKind } from '../../../workers/providers/provider.ts';
import { collected, silentMp3 } from '../../helpers/audio.ts';
import { startMockUpstream } from '../../helpers/mock-upstream.ts';
import { MOCK_TRANSCRIPT } from '../../helpers/mock-upstream-speech.ts';
import type { MockBehaviour } from '../../helpers/mock-upstream-wire.ts';
import { SECRET_CREDENTIAL, SECRET_PROMPT } from './conformance.ts';
import { speechCall } from './conformance-speech.ts';
import {
  describeTranscriptionAdapter,
  type TranscriptionCallChanges,
  type TranscriptionHarness,
  transcriptionCall,
} from './conformance-transcription.ts';

const FAILURES: Readonly<Record<ProviderErrorKind, MockBehaviour>> = {
  unavailable: { status: 503, error: { message: SECRET_PROMPT } },
  moderated: { status: 400, error: { code: 'content_policy_violation', message: SECRET_PROMPT } },
  rejected: { status: 400, error: { message: `Bad value; your key is ${SECRET_CREDENTIAL}`, param: 'file' } },
  misconfigured: { status: 401, error: { message: `Incorrect key ${SECRET_CREDENTIAL}` } },
  invalid_response: { rawBody: `{"text":7,"prompt":"${SECRET_PROMPT}"}` },
};

describeTranscriptionAdapter('openai', async (): Promise<TranscriptionHarness> => {
  const upstream = await startMockUpstream({ credential: SECRET_CREDENTIAL });
  const provider = makeProvider({
    name: 'mock',
    kind: 'openai',
    baseUrl: upstream.baseUrl,
    credential: SECRET_CREDENTIAL,
  });
  upstream.program('hanging', { hang: 'before-headers' });
  for (const [kind, behaviour] of Object.entries(FAILURES)) upstream.program(kind, behaviour);
  const call = (upstreamModel: string, changes?: TranscriptionCallChanges) =>
    transcriptionCall(silentMp3(3), { upstreamModel, prompt: SECRET_PROMPT, ...changes });
  return {
    provider,
    text: MOCK_TRANSCRIPT,
    answered: (changes) => call('good', changes),
    hanging: (changes) => call('hanging', changes),
    failing: (kind) => call(kind),
    close: async () => {
      await provider.close();
      await upstream.close();
    },
  };
});

describeTranscriptionAdapter('sandbox', async (): Promise<TranscriptionHarness> => {
  const provider = makeProvider({
    name: 'sandbox',
    kind: 'sandbox',
    baseUrl: undefined,
    credential: undefined,
  });
  const text = 'Hello there. This is what the sandbox said, and it is heard again.';
  if (provider.speech === undefined) throw new Error('The sandbox has no speech.');
  const audio = await collected(provider.speech.speak(speechCall({ text })));
  const call = (directive: string, changes?: TranscriptionCallChanges) =>
    transcriptionCall(audio, { prompt: `${SECRET_PROMPT} ${directive}`, ...changes });
  return {
    provider,
    text,
    answered: (changes) => call('', changes),
    hanging: (changes) => call('[[sandbox:delay=60000]]', changes),
    failing: (kind) => call(`[[sandbox:error=${kind}]]`),
    close: () => provider.close(),
  };
});
