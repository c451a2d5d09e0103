/** The conformance suite against every chat adapter: a new adapter is one more harness here. */
import { makeProvider } from '../../../workers/providers/index.ts';
import type { ChatCall, ProviderErrorKind } from '../../../workers/providers/provider.ts';
import { startMockUpstream } from '../../helpers/mock-upstream.ts';
import type { MockBehaviour } from '../../helpers/mock-upstream-wire.ts';
import {
  type CallChanges,
  type ChatHarness,
  describeChatAdapter,
  SECRET_CREDENTIAL,
  SECRET_PROMPT,
} from './conformance.ts';

function callOf(model: string, prompt: string, changes: CallChanges = {}): ChatCall {
  return {
    requestId: '018f0000-0000-7000-8000-000000000001',
    upstreamModel: model,
    outputCapTokens: 200,
    signal: new AbortController().signal,
    ...changes,
    body: { model: 'public-name', messages: [{ role: 'user', content: prompt }], ...changes.body },
  };
}

const FAILURES: Readonly<Record<ProviderErrorKind, MockBehaviour>> = {
  unavailable: { status: 503, error: { message: SECRET_PROMPT } },
  moderated: { status: 400, error: { code: 'content_policy_violation', message: SECRET_PROMPT } },
  rejected: {
    status: 400,
    error: { message: `Bad value; your key is ${SECRET_CREDENTIAL}`, param: 'temperature' },
  },
  misconfigured: { status: 401, error: { message: `Incorrect key ${SECRET_CREDENTIAL}` } },
  invalid_response: { rawBody: `{"broken": "${SECRET_PROMPT}`, contentType: 'text/plain' },
};

describeChatAdapter('openai', async (): Promise<ChatHarness> => {
  const upstream = await startMockUpstream({ credential: SECRET_CREDENTIAL });
  const provider = makeProvider({
    name: 'mock',
    kind: 'openai',
    baseUrl: upstream.baseUrl,
    credential: SECRET_CREDENTIAL,
  });
  upstream.program('hanging', { hang: 'before-headers' });
  upstream.program('cut', { cutAfterChunks: 2 });
  upstream.program('without-usage', { usage: 'missing' });
  for (const [kind, behaviour] of Object.entries(FAILURES)) upstream.program(kind, behaviour);
  return {
    provider,
    answered: (changes) => callOf('good', SECRET_PROMPT, changes),
    hanging: (changes) => callOf('hanging', SECRET_PROMPT, changes),
    cut: (changes) => callOf('cut', SECRET_PROMPT, changes),
    withoutUsage: (changes) => callOf('without-usage', SECRET_PROMPT, changes),
    failing: (kind, changes) => callOf(kind, SECRET_PROMPT, changes),
    close: async () => {
      await provider.close();
      await upstream.close();
    },
  };
});

describeChatAdapter('sandbox', async (): Promise<ChatHarness> => {
  const provider = makeProvider({
    name: 'sandbox',
    kind: 'sandbox',
    baseUrl: undefined,
    credential: undefined,
  });
  const call = (directive: string) => (changes?: CallChanges) =>
    callOf('sandbox-chat', `${SECRET_PROMPT} ${directive}`, changes);
  return {
    provider,
    answered: call(''),
    hanging: call('[[sandbox:delay=60000]]'),
    cut: call('[[sandbox:cut]]'),
    withoutUsage: call('[[sandbox:no_usage]]'),
    failing: (kind, changes) => call(`[[sandbox:error=${kind}]]`)(changes),
    close: () => provider.close(),
  };
});
