/**
 * What providers do wrong, and what comes of it: a clear error, nothing charged, the next provider where there is one, and a
 * provider that keeps failing left alone for a while.
 */
import { expect } from 'chai';
import { afterEach, beforeEach, describe, it } from 'mocha';
import type { ErrorCode } from '../../core/errors.ts';
import { selectOne } from '../helpers/database.ts';
import type { MockBehaviour } from '../helpers/mock-upstream-wire.ts';
import {
  type Answer,
  chatBody,
  DEFAULT_COST_AP,
  eventually,
  MODEL,
  MODEL_WITH_BACKUP,
  makeGate,
  type TestCaller,
  type TestService,
  withTestService,
} from '../helpers/service.ts';

const BALANCE_AP = 10_000;
const SECRET_WORDS = 'what only the provider may know';

interface Fault {
  readonly name: string;
  /** One a provider call, in order. */
  readonly behaviours: readonly MockBehaviour[];
  readonly code: ErrorCode;
  readonly status: number;
  /** Provider calls made in all. */
  readonly calls: number;
  readonly siblings?: object;
}

const FAILED = { code: 'generation_failed', status: 503 } as const;
const error = { message: SECRET_WORDS };
const liar = (usage: unknown): MockBehaviour => ({ usage });

/** Whole and streamed alike: nothing was passed on yet. */
const FAULTS: readonly Fault[] = [
  {
    name: '500 twice',
    behaviours: [
      { status: 500, error },
      { status: 500, error },
    ],
    calls: 2,
    ...FAILED,
  },
  {
    name: '429 that asks for a long pause',
    behaviours: [{ status: 429, error, retryAfter: '30' }],
    calls: 1,
    ...FAILED,
  },
  {
    name: 'a connection reset twice',
    behaviours: [{ reset: 'before-headers' }, { reset: 'before-headers' }],
    calls: 2,
    ...FAILED,
  },
  { name: 'a refused credential', behaviours: [{ status: 401, error }], calls: 1, ...FAILED },
  { name: 'an unknown model there', behaviours: [{ status: 404, error }], calls: 1, ...FAILED },
  {
    name: 'a body of another kind',
    behaviours: [{ rawBody: `<html>${SECRET_WORDS}</html>`, contentType: 'text/html' }],
    calls: 1,
    ...FAILED,
  },
  {
    name: 'moderation',
    behaviours: [{ status: 400, error: { ...error, code: 'content_filter' } }],
    calls: 1,
    code: 'content_moderated',
    status: 422,
  },
  {
    name: 'a request it refuses',
    behaviours: [{ status: 422, error: { message: 'Too many tools.', param: 'tools' } }],
    calls: 1,
    code: 'invalid_parameter',
    status: 400,
    siblings: { param: 'tools', provider_message: 'Too many tools.' },
  },
];

const WHOLE_FAULTS: readonly Fault[] = [
  { name: 'broken JSON', behaviours: [{ rawBody: `{"choices": [{"${SECRET_WORDS}` }], calls: 1, ...FAILED },
  { name: 'no choices', behaviours: [{ choices: [] }], calls: 1, ...FAILED },
  {
    name: 'an error in a good status',
    behaviours: [{ rawBody: JSON.stringify({ error }) }, { rawBody: JSON.stringify({ error }) }],
    calls: 2,
    ...FAILED,
  },
  {
    name: 'usage far above the cap',
    behaviours: [liar({ prompt_tokens: 9, completion_tokens: 5000, total_tokens: 5009 })],
    calls: 1,
    ...FAILED,
  },
  {
    name: 'usage far above the prompt',
    behaviours: [liar({ prompt_tokens: 90_000, completion_tokens: 5, total_tokens: 90_005 })],
    calls: 1,
    ...FAILED,
  },
  {
    name: 'negative usage',
    behaviours: [liar({ prompt_tokens: -9, completion_tokens: 5, total_tokens: -4 })],
    calls: 1,
    ...FAILED,
  },
  {
    name: 'usage in words',
    behaviours: [liar({ prompt_tokens: 'nine', completion_tokens: 5, total_tokens: 14 })],
    calls: 1,
    ...FAILED,
  },
];

/** In the middle of a stream: what was passed on stays, an error event ends it, nothing is tried again. */
const STREAM_FAULTS: readonly (Fault & { readonly seen: string })[] = [
  { name: 'a cut', behaviours: [{ cutAfterChunks: 2 }], calls: 1, seen: 'Hello from ', ...FAILED },
  {
    name: 'an error event',
    behaviours: [{ errorEvent: { afterChunks: 1, error } }],
    calls: 1,
    seen: 'Hello ',
    ...FAILED,
  },
  {
    name: 'a named error event',
    behaviours: [{ errorEvent: { afterChunks: 1, error, named: true } }],
    calls: 1,
    seen: 'Hello ',
    ...FAILED,
  },
  {
    name: 'an error event of its safety system',
    behaviours: [{ errorEvent: { afterChunks: 1, error: { ...error, code: 'content_filter' } } }],
    calls: 1,
    seen: 'Hello ',
    code: 'content_moderated',
    status: 422,
  },
  {
    name: 'no finish',
    behaviours: [{ omitFinish: true }],
    calls: 1,
    seen: 'Hello from the mock.',
    ...FAILED,
  },
  {
    name: 'broken JSON',
    behaviours: [
      { rawBody: ['data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n', 'data: {"cho\n\n'] },
    ],
    calls: 1,
    seen: 'Hi',
    ...FAILED,
  },
  {
    name: 'one endless event',
    behaviours: [
      {
        rawBody: [
          'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n',
          'data: ',
          ...Array<string>(70).fill('x'.repeat(16_000)),
        ],
      },
    ],
    calls: 1,
    seen: 'Hi',
    ...FAILED,
  },
  {
    name: 'usage far above the cap',
    behaviours: [liar({ prompt_tokens: 9, completion_tokens: 5000 })],
    calls: 1,
    seen: 'Hello from the mock.',
    ...FAILED,
  },
];

function eventsOf(answer: Answer): { readonly text: string; readonly last: { error?: { code: string } } } {
  const events = answer.text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map(
      (event) =>
        JSON.parse(event.slice(6)) as {
          choices?: { delta?: { content?: string } }[];
          error?: { code: string };
        },
    );
  const text = events.map((event) => event.choices?.[0]?.delta?.content ?? '').join('');
  return { text, last: events.at(-1) ?? {} };
}

describe('a provider that fails', () => {
  const service = withTestService();
  let caller: TestCaller;
  beforeEach(async () => {
    caller = await service.makeCaller({ balanceAp: BALANCE_AP });
  });
  afterEach('nothing was charged, and the next request is served', async () => {
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
    expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp: BALANCE_AP, heldAp: 0 });
    service.upstream.reset();
    // a success also closes the count of consecutive failures, which would open the circuit
    expect((await service.chat(caller)).status).to.equal(200);
    service.upstream.reset();
  });

  async function expectFailure(fault: Fault, isStream: boolean): Promise<Answer> {
    service.upstream.programNext(...fault.behaviours);
    const answer = await service.chat(caller, isStream ? { stream: true } : {});
    expect(service.upstream.count(), 'provider calls').to.equal(fault.calls);
    expect(answer.text).to.not.include(SECRET_WORDS);
    const row = await selectOne(
      service.pool,
      'select state, cost_ap, error_code from app.requests where account_id = $1',
      [caller.accountId],
    );
    expect(row).to.deep.equal({ state: 'failed', cost_ap: 0, error_code: fault.code });
    return answer;
  }

  for (const [kind, faults] of [
    ['whole', [...FAULTS, ...WHOLE_FAULTS]],
    ['streamed', FAULTS],
  ] as const) {
    for (const fault of faults) {
      it(`with ${fault.name}, ${kind}: ${fault.code}`, async () => {
        const answer = await expectFailure(fault, kind === 'streamed');
        expect([answer.status, answer.json.error.code]).to.deep.equal([fault.status, fault.code]);
        const { error: _error, ...siblings } = answer.json;
        expect(siblings).to.deep.equal(fault.siblings ?? {});
        expect(answer.headers.get('retry-after')).to.equal(fault.status === 503 ? '1' : null);
      });
    }
  }

  for (const fault of STREAM_FAULTS) {
    it(`with ${fault.name} in the middle of a stream: ${fault.code} as its last event`, async () => {
      const answer = await expectFailure(fault, true);
      expect(answer.status).to.equal(200);
      const { text, last } = eventsOf(answer);
      expect(text).to.equal(fault.seen);
      expect(last.error?.code).to.equal(fault.code);
      expect(answer.text).to.not.include('[DONE]');
    });
  }
});

describe('a provider that ignores the output cap', () => {
  const lines: Record<string, unknown>[] = [];
  const service = withTestService({ onWarning: (line) => lines.push(line) });

  for (const n of [1, 2]) {
    it(`is stopped, heard no further than the cap, unpaid and logged by name (${n} choices)`, async () => {
      const caller = await service.makeCaller({ balanceAp: BALANCE_AP });
      lines.length = 0;
      service.upstream.programNext({ chunks: Array<string>(60).fill(`${SECRET_WORDS} `), hang: 50 });
      const answer = await service.chat(caller, { stream: true, max_tokens: 20, n });
      expect(answer.text.match(/"content":"what/g)?.length).to.equal(20 * n);
      expect(eventsOf(answer).last.error?.code).to.equal('generation_failed');
      await service.upstream.calls.at(-1)?.aborted;
      expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp: BALANCE_AP, heldAp: 0 });
      const line = lines.find(({ msg }) => msg === 'a provider failed');
      expect(line).to.include({ modelId: MODEL });
      expect(line?.reason).to.include('mock').and.not.include(SECRET_WORDS);
    });
  }
});

describe('a provider that counts pictures high', () => {
  const service = withTestService();

  it('is believed up to the model’s context, and paid up to the hold', async () => {
    const caller = await service.makeCaller();
    const usage = { prompt_tokens: 90_000, completion_tokens: 5, total_tokens: 90_005 };
    service.upstream.programNext(liar(usage));
    const picture = { type: 'image_url', image_url: { url: 'https://example.org/cat.png' } };
    const answer = await service.chat(caller, { messages: [{ role: 'user', content: [picture] }] });
    expect(answer.status).to.equal(200);
    const [charge] = await service.chargesOf(caller.accountId);
    expect(charge).to.be.within(40_000, 41_000);
  });
});

describe('a provider that reports usage before it is done', () => {
  const service = withTestService();

  for (const [when, usage, content] of [
    ['with its first chunk', { prompt_tokens: 9, completion_tokens: 0 }, ''],
    ['with its first word', { prompt_tokens: 9, completion_tokens: 1 }, 'word '],
  ] as const) {
    it(`${when}, is paid for all that it produced`, async () => {
      const caller = await service.makeCaller();
      const chunk = (choice: object, rest: object = {}): string =>
        `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }], ...rest })}\n\n`;
      service.upstream.programNext({
        rawBody: [
          chunk({ delta: { role: 'assistant', content } }, { usage }),
          ...Array<string>(60).fill(chunk({ delta: { content: 'word ' } })),
          chunk({ delta: {}, finish_reason: 'stop' }),
          'data: [DONE]\n\n',
        ],
      });
      const answer = await service.chat(caller, { stream: true });
      expect(answer.text).to.include('[DONE]');
      const row = await selectOne<{ usage: typeof usage }>(
        service.pool,
        'select usage from app.requests where account_id = $1',
        [caller.accountId],
      );
      expect(row.usage.prompt_tokens).to.equal(9);
      expect(row.usage.completion_tokens).to.be.at.least(60);
    });
  }
});

describe('a provider that fails at first', () => {
  const service = withTestService();
  afterEach(() => service.upstream.reset());

  for (const stream of [false, true]) {
    const kind = stream ? 'streamed' : 'whole';
    for (const [name, behaviour] of [
      ['a 500', { status: 500 }],
      ['a reset connection', { reset: 'before-headers' }],
      ['a 429 without a pause', { status: 429, retryAfter: '0' }],
    ] as const) {
      it(`with ${name}, ${kind}, is asked again, and paid once`, async () => {
        const caller = await service.makeCaller();
        service.upstream.programNext(behaviour);
        const answer = await service.chat(caller, { stream });
        expect(answer.status).to.equal(200);
        expect(answer.text).to.include(stream ? '[DONE]' : 'Hello from the mock.');
        expect(service.upstream.count()).to.equal(2);
        expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
      });
    }
  }

  it('and asks for a short pause, gets it', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ status: 429, retryAfter: '1' });
    expect((await service.chat(caller)).status).to.equal(200);
    const [first, second] = service.upstream.calls;
    expect((second?.receivedAt ?? 0) - (first?.receivedAt ?? 0)).to.be.at.least(990);
  });
});

describe('a provider that hangs', () => {
  const service = withTestService({ config: { chatTimeoutSeconds: 1 } });
  let caller: TestCaller;
  beforeEach(async () => {
    caller = await service.makeCaller({ balanceAp: BALANCE_AP });
  });
  afterEach(async () => {
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
    expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp: BALANCE_AP, heldAp: 0 });
    service.upstream.reset();
  });

  it('before it answers is given up at the deadline, its call aborted and the request voided', async () => {
    service.upstream.programNext({ hang: 'before-headers' }, { hang: 'before-headers' });
    const [whole, streamed] = await Promise.all([
      service.chat(caller),
      service.chat(caller, { stream: true }),
    ]);
    for (const answer of [whole, streamed]) {
      expect([answer.status, answer.json.error.code]).to.deep.equal([503, 'generation_failed']);
    }
    await Promise.all(service.upstream.calls.map((call) => call.aborted));
    expect(service.upstream.count()).to.equal(2);
  });

  it('in the middle of a stream is given up at the deadline, with an error event', async () => {
    service.upstream.programNext({ hang: 2 });
    const answer = await service.chat(caller, { stream: true });
    const { text, last } = eventsOf(answer);
    expect([text, last.error?.code]).to.deep.equal(['Hello from ', 'generation_failed']);
    await service.upstream.calls[0]?.aborted;
  });
});

describe('a second route', () => {
  const service = withTestService();
  let caller: TestCaller;
  beforeEach(async () => {
    caller = await service.makeCaller();
  });
  afterEach(async () => {
    service.upstream.reset();
    expect((await service.chat(caller, { model: MODEL_WITH_BACKUP })).status).to.equal(200);
    service.upstream.reset();
    service.backup.reset();
  });

  const chat = (body: object = {}) => service.chat(caller, { model: MODEL_WITH_BACKUP, ...body });
  const served = async (answer: Answer) =>
    selectOne(service.pool, 'select state, provider, cost_ap from app.requests where id = $1', [
      answer.headers.get('x-svc-request-id'),
    ]);

  const routable: readonly (readonly [string, readonly MockBehaviour[]])[] = [
    ['keeps failing', [{ status: 500 }, { status: 500 }]],
    ['asks for a long pause', [{ status: 429, retryAfter: '60' }]],
    ['refuses our credential', [{ status: 401 }]],
    ['does not know the model', [{ status: 404 }]],
    ['answers nonsense', [{ rawBody: 'nonsense', contentType: 'text/plain' }]],
    ['is not there', [{ reset: 'before-headers' }, { reset: 'before-headers' }]],
  ];
  for (const stream of [false, true]) {
    for (const [name, behaviours] of routable) {
      it(`serves what the first, which ${name}, did not, ${stream ? 'streamed' : 'whole'}; paid once`, async () => {
        service.upstream.programNext(...behaviours);
        service.backup.programNext({ content: 'From the backup.' });
        const answer = await chat({ stream });
        expect(answer.status).to.equal(200);
        expect(stream ? eventsOf(answer).text : answer.json.choices[0].message.content).to.equal(
          'From the backup.',
        );
        expect(answer.headers.get('x-svc-model')).to.equal(MODEL_WITH_BACKUP);
        expect(await served(answer)).to.deep.equal({
          state: 'succeeded',
          provider: 'backup',
          cost_ap: DEFAULT_COST_AP,
        });
        expect([service.upstream.count(), service.backup.count()]).to.deep.equal([behaviours.length, 1]);
        expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
      });
    }
  }

  it('is not asked for what a provider declined or found wrong', async () => {
    service.upstream.programNext({ status: 400, error: { code: 'content_filter' } }, { status: 400 });
    expect((await chat()).status).to.equal(422);
    expect((await chat()).status).to.equal(400);
    expect(service.backup.count()).to.equal(0);
  });

  it('is not asked once a part of a stream was passed on', async () => {
    service.upstream.programNext({ cutAfterChunks: 1 });
    const answer = await chat({ stream: true });
    expect(eventsOf(answer).last.error?.code).to.equal('generation_failed');
    expect(service.backup.count()).to.equal(0);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
  });

  it('that fails too ends it', async () => {
    service.upstream.programNext({ status: 500 }, { status: 500 });
    service.backup.programNext({ status: 500 }, { status: 500 });
    const answer = await chat();
    expect([answer.status, answer.json.error.code]).to.deep.equal([503, 'generation_failed']);
    expect(await served(answer)).to.include({ state: 'failed', cost_ap: 0 });
  });
});

describe('a first route that shows nothing', () => {
  const service = withTestService({ config: { chatTimeoutSeconds: 2 } });

  it('is left in time for the second, unlike one that has begun, and then left alone', async () => {
    const caller = await service.makeCaller();
    const chat = (stream: boolean) => service.chat(caller, { model: MODEL_WITH_BACKUP, stream });
    const othersAreServed = makeGate();
    service.upstream.programNext({ content: 'Hello you', chunkGate: () => othersAreServed.passed });
    const begun = chat(true);
    await service.upstream.waitForCall();
    service.upstream.program(MODEL_WITH_BACKUP, { hang: 'before-headers' });
    const answers = await Promise.all([false, true, false, true, false].map(chat));
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200]);
    othersAreServed.open();
    expect(eventsOf(await begun).text).to.equal('Hello you');
    expect([service.upstream.count(), service.backup.count()]).to.deep.equal([6, 5]);
    await Promise.all(service.upstream.calls.slice(1).map((call) => call.aborted));
    expect((await chat(false)).status).to.equal(200);
    expect([service.upstream.count(), service.backup.count()]).to.deep.equal([6, 6]);
    expect(await service.chargesOf(caller.accountId)).to.have.length(7);
  });
});

describe('a stream that a first route reported usage for, and failed', () => {
  const service = withTestService();
  const usage = { prompt_tokens: 20, completion_tokens: 90, total_tokens: 110 };
  const failing: MockBehaviour = {
    rawBody: [`data: ${JSON.stringify({ choices: [], usage })}\n\n`, 'data: {"error":{"message":"x"}}\n\n'],
  };
  let caller: TestCaller;
  beforeEach(async () => {
    caller = await service.makeCaller();
    service.upstream.programNext(failing, failing);
  });
  afterEach(() => {
    service.upstream.reset();
    service.backup.reset();
  });

  it('is paid as the second route served it', async () => {
    service.backup.programNext({ content: 'From the backup.', usage: 'missing' });
    const answer = await service.chat(caller, { model: MODEL_WITH_BACKUP, stream: true });
    expect(eventsOf(answer).text).to.equal('From the backup.');
    const row = await selectOne(
      service.pool,
      'select provider, usage from app.requests where account_id = $1',
      [caller.accountId],
    );
    // counted by us: the text alone, and not what the first route said
    expect(row).to.deep.equal({ provider: 'backup', usage: { prompt_tokens: 8, completion_tokens: 4 } });
  });

  it('is not paid by a caller who leaves before the second route has served anything', async () => {
    service.backup.programNext({ hang: 'before-headers' });
    const leave = new AbortController();
    const leaving = service
      .chat(caller, { model: MODEL_WITH_BACKUP, stream: true }, { signal: leave.signal })
      .catch(() => undefined);
    const call = await service.backup.waitForCall();
    leave.abort();
    await Promise.all([leaving, call.aborted]);
    await eventually(async () =>
      expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp: 1_000_000, heldAp: 0 }),
    );
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
  });
});

describe('the circuit of a route', () => {
  const service = withTestService();
  /** Consecutive failures that open it, and how long it stays open (workers/routes.ts). */
  const FAILURES = 5;
  const OPEN_MS = 10_000;

  /** Failing with a status that is not tried again: one call a request. */
  async function breakIt(caller: TestCaller, model: string): Promise<void> {
    service.upstream.program(model, { status: 401 });
    for (let call = 0; call < FAILURES; call += 1) await service.chat(caller, { model });
    expect(service.upstream.count(model)).to.equal(FAILURES);
  }

  it('opens after consecutive failures, spares the provider, and closes when it is well again', async () => {
    const caller = await service.makeCaller();
    await breakIt(caller, MODEL);
    const refused = await service.chat(caller);
    expect([refused.status, refused.json.error.code]).to.deep.equal([503, 'generation_failed']);
    expect(service.upstream.count(MODEL)).to.equal(FAILURES);

    // still ill when tried again: open for another while
    await withClockAhead(OPEN_MS, async () => {
      await service.chat(caller);
      await service.chat(caller);
    });
    expect(service.upstream.count(MODEL)).to.equal(FAILURES + 1);

    service.upstream.program(MODEL, {});
    await withClockAhead(2 * OPEN_MS + 1000, async () => {
      expect((await service.chat(caller)).status).to.equal(200);
    });
    expect((await service.chat(caller)).status).to.equal(200);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP, DEFAULT_COST_AP]);
  });

  it('that is open sends requests to the next route at once', async () => {
    const caller = await service.makeCaller();
    await breakIt(caller, MODEL_WITH_BACKUP);
    expect((await service.chat(caller, { model: MODEL_WITH_BACKUP })).status).to.equal(200);
    expect([service.upstream.count(MODEL_WITH_BACKUP), service.backup.count()]).to.deep.equal([
      FAILURES,
      FAILURES + 1,
    ]);
  });

  it('closes with the first chunk of a stream, however long that goes on', async () => {
    const caller = await service.makeCaller();
    service.upstream.reset();
    await breakIt(caller, MODEL);
    service.upstream.program(MODEL, {});
    service.upstream.programNext({ hang: 1 });
    await withClockAhead(3 * OPEN_MS, async () => {
      const leave = new AbortController();
      const response = await fetch(`${service.urls[0]}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${caller.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(chatBody({ stream: true })),
        signal: leave.signal,
      });
      await response.body?.getReader().read();
      expect((await service.chat(caller)).status).to.equal(200);
      leave.abort();
    });
  });

  it('does not open for usage that nobody believes', async () => {
    const caller = await service.makeCaller();
    service.upstream.reset();
    for (let call = 0; call < FAILURES; call += 1) {
      service.upstream.programNext(liar({ prompt_tokens: 9, completion_tokens: 5000 }));
      expect((await service.chat(caller)).status).to.equal(503);
    }
    expect((await service.chat(caller)).status).to.equal(200);
  });

  it('does not open for requests that were at fault themselves, nor for callers who left', async () => {
    const caller = await service.makeCaller();
    service.upstream.reset();
    for (let call = 0; call < 2 * FAILURES; call += 1) {
      service.upstream.programNext({ status: 400 });
      expect((await service.chat(caller)).status).to.equal(400);
    }
    for (let call = 0; call < 2 * FAILURES; call += 1) {
      service.upstream.programNext({ hang: 'before-headers' });
      const leave = new AbortController();
      const leaving = service.chat(caller, {}, { signal: leave.signal }).catch(() => undefined);
      await waitForCalls(service, 2 * FAILURES + call + 1);
      leave.abort();
      await leaving;
    }
    expect((await service.chat(caller)).status).to.equal(200);
  });
});

async function waitForCalls(service: TestService, count: number): Promise<void> {
  while (service.upstream.count() < count) await service.upstream.waitForCall();
}

/** Runs `work` while the clock says it is later; waits and durations go on as ever. */
async function withClockAhead(milliseconds: number, work: () => Promise<void>): Promise<void> {
  const { now } = Date;
  Date.now = () => now() + milliseconds;
  try {
    await work();
  } finally {
    Date.now = now;
  }
}
