/** Clients that leave, that read slowly, that wait long, that take much; and keys that change while they are used. */
import { expect } from 'chai';
import { afterEach, beforeEach, describe, it } from 'mocha';
import { HTTP_LIMITS } from '../../workers/providers/http-exchange.ts';
import { selectOne } from '../helpers/database.ts';
import {
  DEFAULT_COST_AP,
  eventually,
  MODEL,
  makeGate,
  type TestCaller,
  withTestService,
} from '../helpers/service.ts';
import { openStream } from './streams.ts';

const BALANCE_AP = 100_000;
/** "user", "Hello" and the frame of a message, as the tokenizer counts them. */
const PROMPT_TOKENS = 8;

describe('a client that leaves', () => {
  const service = withTestService();
  let caller: TestCaller;
  beforeEach(async () => {
    caller = await service.makeCaller({ balanceAp: BALANCE_AP });
  });
  afterEach(() => service.upstream.reset());

  const settled = (costAp: number) =>
    eventually(async () => {
      const row = await selectOne(
        service.pool,
        'select state, cost_ap from app.requests where account_id = $1',
        [caller.accountId],
      );
      expect(row).to.deep.equal({ state: 'cancelled', cost_ap: costAp });
      expect(await service.balanceOf(caller.accountId)).to.include({
        balanceAp: BALANCE_AP - costAp,
        heldAp: 0,
      });
      expect(await service.chargesOf(caller.accountId)).to.deep.equal(costAp === 0 ? [] : [costAp]);
    });

  it('in the middle of a stream has the provider stopped within a second, and pays for what was produced', async () => {
    service.upstream.programNext({ chunks: ['one ', 'two ', 'three'], hang: 2 });
    const stream = await openStream(service, caller);
    await stream.readUntil('two ');
    const [call] = service.upstream.calls;
    const leftAt = performance.now();
    stream.leave();
    await call?.aborted;
    expect((call?.abortedAt ?? 0) - leftAt).to.be.below(1000);
    await settled(PROMPT_TOKENS + 2 * 3);
    const { json } = await service.get(`/v1/requests/${stream.id}`, caller);
    expect(json.usage).to.deep.equal({ prompt_tokens: PROMPT_TOKENS, completion_tokens: 3 });
  });

  for (const [name, usages, counted] of [
    ['pays what the provider has reported by then', [{ prompt_tokens: 9, completion_tokens: 4 }], [9, 4]],
    [
      'pays for what came after the provider’s last report too',
      [{ prompt_tokens: 9, completion_tokens: 1 }, null],
      [9, 3],
    ],
    [
      'pays by our own count when the report cannot be true',
      [{ prompt_tokens: 9, completion_tokens: 5000 }],
      [PROMPT_TOKENS, 3],
    ],
    [
      'pays what the provider has reported last of all',
      [null, null, { prompt_tokens: 9, completion_tokens: 2 }],
      [9, 2],
    ],
  ] as const) {
    it(`in the middle of a stream ${name}`, async () => {
      const chunk = (content: string, usage: unknown): string =>
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }], usage })}\n\n`;
      const [first, second = first, last] = usages;
      const rest = makeGate();
      const end = last === undefined ? '' : `data: ${JSON.stringify({ choices: [], usage: last })}\n\n`;
      const stream = chunk('one ', first) + chunk('two ', second) + end;
      service.upstream.programNext({ rawBody: [stream], rawBodyGate: rest.passed });
      const reading = await openStream(service, caller);
      await reading.readUntil('two ');
      reading.leave();
      const [promptTokens, completionTokens] = counted;
      await settled(promptTokens + 2 * completionTokens);
      rest.open();
    });
  }

  it('when a stream has begun without a word pays for the prompt', async () => {
    service.upstream.programNext({ hang: 0 });
    const stream = await openStream(service, caller);
    await stream.readUntil('assistant');
    stream.leave();
    await settled(PROMPT_TOKENS);
  });

  for (const stream of [true, false]) {
    const kind = stream ? 'a stream' : 'a whole answer';
    it(`while ${kind} is waited for has the provider stopped within a second, and pays nothing`, async () => {
      service.upstream.programNext({ hang: 'before-headers' });
      const leave = new AbortController();
      const leaving = service.chat(caller, { stream }, { signal: leave.signal }).catch(() => undefined);
      const call = await service.upstream.waitForCall();
      const leftAt = performance.now();
      leave.abort();
      await call.aborted;
      expect((call.abortedAt ?? 0) - leftAt).to.be.below(1000);
      await leaving;
      await settled(0);
    });

    it(`while the request for ${kind} is being accepted is noticed after that, and pays nothing`, async () => {
      service.upstream.program(MODEL, { hang: 'before-headers' });
      // somebody holds the account's balance, so the request cannot be accepted yet
      const lock = await service.pool.connect();
      await lock.query('begin');
      await lock.query('select from app.balances where account_id = $1 for update', [caller.accountId]);
      const leave = new AbortController();
      const leaving = service.chat(caller, { stream }, { signal: leave.signal }).catch(() => undefined);
      await eventually(async () => {
        const { waiting } = await selectOne<{ waiting: number }>(
          service.pool,
          `select count(*) as waiting from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and query like '%submit_requests%'`,
        );
        expect(waiting).to.equal(1);
      });
      leave.abort();
      await leaving;
      for (let turn = 0; turn < 3; turn += 1) await service.get('/'); // the ingress has seen it by then
      await lock.query('rollback');
      lock.release();
      await settled(0);
    });
  }

  it('after the answer was given changes nothing', async () => {
    const stream = await openStream(service, caller);
    await stream.readAll();
    stream.leave();
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
  });

  it('of many streams at once leaves none of them running', async () => {
    service.upstream.program(MODEL, { chunks: ['one ', 'two ', 'three'], hang: 2 });
    const streams = await Promise.all(Array.from({ length: 30 }, () => openStream(service, caller)));
    await Promise.all(streams.map((stream) => stream.readUntil('two ')));
    for (const stream of streams) stream.leave();
    await Promise.all(service.upstream.calls.map((call) => call.aborted));
    const costAp = PROMPT_TOKENS + 2 * 3;
    await eventually(async () =>
      expect(await service.chargesOf(caller.accountId)).to.deep.equal(Array<number>(30).fill(costAp)),
    );
    expect(await service.balanceOf(caller.accountId)).to.include({ heldAp: 0 });
  });
});

describe('a slow reader', () => {
  const FIREHOSE_BYTES = 28 * 1024 * 1024;
  /** What the kernel holds of two loopback connections that nobody reads, besides the service's own window. */
  const KERNEL_BYTES = 18 * 1024 * 1024;
  const service = withTestService();
  afterEach(() => service.upstream.reset());

  it('holds the provider back, slows nobody else, and gets everything in the end', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ firehoseBytes: FIREHOSE_BYTES, chunks: ['the end'] });
    const stream = await openStream(service, caller, { max_tokens: 4096 });
    const [call] = service.upstream.calls;
    let before = -1;
    await eventually(async () => {
      const now = call?.bytesWritten ?? 0;
      const isStill = now === before;
      before = now;
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(isStill, 'the provider is still read from').to.equal(true);
    }, 10_000);
    expect(before).to.be.below(KERNEL_BYTES + service.config.streamWindowBytes);

    const others = await Promise.all(
      Array.from({ length: 20 }, () => service.chat(caller, { stream: true })),
    );
    for (const other of others) expect(other.text).to.include('[DONE]');
    expect(call?.bytesWritten).to.equal(before);

    await stream.readAll();
    expect(stream.text.endsWith('data: [DONE]\n\n')).to.equal(true);
    expect(stream.content.endsWith('the end')).to.equal(true);
    expect(stream.content.replaceAll('x', '')).to.equal('the end');
    expect(stream.content.length).to.be.above(FIREHOSE_BYTES * 0.9);
    expect((await service.chargesOf(caller.accountId)).length).to.equal(21);
  }).timeout(30_000);
});

describe('a reader that takes nothing', () => {
  const service = withTestService({ config: { slowReaderSeconds: 1 } });

  it('for as long as configured has its request ended, and pays for what was produced', async () => {
    const caller = await service.makeCaller({ balanceAp: BALANCE_AP });
    service.upstream.programNext({ firehoseBytes: 28 * 1024 * 1024 });
    const stream = await openStream(service, caller, { max_tokens: 4096 });
    await service.upstream.waitForAbort();
    const { json } = await eventually(async () => {
      const answer = await service.get(`/v1/requests/${stream.id}`, caller);
      expect(answer.json.status).to.equal('cancelled');
      return answer;
    });
    expect(json.ap_cost).to.be.above(4096); // far more was produced than the hold pays for
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([json.ap_cost]);
    stream.leave();
  }).timeout(30_000);
});

describe('a reader so slow that its deadline comes', () => {
  const service = withTestService({ config: { chatTimeoutSeconds: 2, slowReaderSeconds: 30 } });
  afterEach(() => service.upstream.reset());

  it('pays for what was produced', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ firehoseBytes: 28 * 1024 * 1024 });
    const stream = await openStream(service, caller, { max_tokens: 4096 });
    await service.upstream.waitForAbort();
    const { json } = await eventually(async () => {
      const answer = await service.get(`/v1/requests/${stream.id}`, caller);
      expect(answer.json.finished_at).to.be.a('string');
      return answer;
    });
    expect(json.status).to.equal('cancelled');
    expect(json.ap_cost).to.be.above(4096);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([json.ap_cost]);
    await stream.readAll();
    expect(stream.text.slice(-300)).to.match(/data: \{"error":\{"code":"generation_failed".*\}\n\n$/);
  }).timeout(20_000);

  it('pays nothing when it was the provider that kept it waiting', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ firehoseBytes: 1024 * 1024, hang: 0 });
    const stream = await openStream(service, caller, { max_tokens: 4096 });
    await stream.readAll();
    const { json } = await service.get(`/v1/requests/${stream.id}`, caller);
    expect([json.status, json.ap_cost]).to.deep.equal(['failed', 0]);
  }).timeout(10_000);
});

describe('a stream', () => {
  const service = withTestService({
    config: { streamCommentSeconds: 0.05, streamWindowBytes: 16 * 1024, slowReaderSeconds: 3 },
  });
  afterEach(() => service.upstream.reset());

  it('that is idle gets comments, before its first event too', async () => {
    const caller = await service.makeCaller();
    const [first, second] = [makeGate(), makeGate()];
    service.upstream.programNext({
      gate: first.passed,
      chunks: ['one ', 'two'],
      chunkGate: () => second.passed,
    });
    const stream = await openStream(service, caller);
    await stream.readUntil(': waiting\n\n: waiting\n\n');
    expect(stream.content).to.equal('');
    first.open();
    await stream.readUntil('one ');
    const { length } = stream.text;
    while (!stream.text.slice(length).includes(': waiting\n\n: waiting\n\n'))
      await stream.readUntil(`${stream.text}:`);
    second.open();
    await stream.readAll();
    expect(stream.content).to.equal('one two');
    expect(stream.text.endsWith('data: [DONE]\n\n')).to.equal(true);
  });

  it('that fails after a comment says so in an event', async () => {
    const caller = await service.makeCaller();
    const gate = makeGate();
    service.upstream.programNext({ gate: gate.passed, status: 400 });
    const stream = await openStream(service, caller);
    await stream.readUntil(': waiting');
    gate.open();
    await stream.readAll();
    expect(stream.status).to.equal(200);
    expect(stream.text).to.match(/data: \{"error":\{"code":"invalid_parameter".*\}\n\n$/);
  });

  it('flows through the smallest window', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ firehoseBytes: 1024 * 1024, chunks: ['the end'] });
    const stream = await openStream(service, caller, { max_tokens: 4096 });
    await stream.readAll();
    expect(stream.content.endsWith('the end')).to.equal(true);
    expect(stream.content.length).to.be.above(1_000_000);
  });
});

describe('an answer over the size we take from a provider', () => {
  const service = withTestService();
  afterEach(() => service.upstream.reset());

  it('is ended by an error event, and what was produced is paid', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ firehoseBytes: HTTP_LIMITS.maxResponseBytes + 1024 * 1024 });
    const stream = await openStream(service, caller, { max_tokens: 4096 });
    await stream.readAll();
    expect(stream.text.slice(-300)).to.match(/data: \{"error":\{"code":"generation_failed".*\}\n\n$/);
    const { json } = await service.get(`/v1/requests/${stream.id}`, caller);
    expect(json.status).to.equal('cancelled');
    expect(json.ap_cost).to.be.above(4096);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([json.ap_cost]);
  }).timeout(20_000);

  it('is not paid when nothing of it was passed on', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ content: 'x'.repeat(HTTP_LIMITS.maxResponseBytes) });
    const answer = await service.chat(caller);
    expect([answer.status, answer.json.error.code]).to.deep.equal([503, 'generation_failed']);
    expect(answer.json.reason).to.equal('answer_too_large');
    expect(answer.headers.get('x-should-retry')).to.equal('false');
    expect(service.upstream.count()).to.equal(1);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
  });
});

describe('an answer too large for a frame', () => {
  const service = withTestService();
  afterEach(() => service.upstream.reset());
  // two bytes and more a character, so that bytes and characters cannot be mistaken for each other
  const LARGE = 'あé😀x'.repeat(150_000);

  it('arrives whole', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ content: LARGE });
    const answer = await service.chat(caller);
    expect(answer.status).to.equal(200);
    expect(answer.json.choices[0].message.content === LARGE).to.equal(true);
    expect(answer.headers.get('x-svc-ap-cost')).to.equal(String(DEFAULT_COST_AP));
  });

  it('arrives in one event of a stream', async () => {
    const caller = await service.makeCaller();
    service.upstream.programNext({ chunks: ['so ', LARGE, ' it is'] });
    const stream = await openStream(service, caller);
    await stream.readAll();
    expect(stream.content === `so ${LARGE} it is`).to.equal(true);
  });
});

describe('a key that is in use', () => {
  const service = withTestService();
  let caller: TestCaller;
  beforeEach('the key is known to the ingress', async () => {
    caller = await service.makeCaller();
    for (let call = 0; call < 2; call += 1) expect((await service.chat(caller)).status).to.equal(200);
  });
  const change = (text: string) => service.pool.query(text, [caller.keyId]);
  const becomes = (code: string | undefined) =>
    eventually(async () => expect((await service.chat(caller)).json.error?.code).to.equal(code), 1000);

  it('is refused as soon as it is revoked', async () => {
    await change(`select app.revoke_key($1, 'test')`);
    await becomes('key_revoked');
  });

  it('is refused as soon as it has expired', async () => {
    await change(`update app.keys set expires_at = now() - interval '1 second' where id = $1`);
    await becomes('key_expired');
    await change(`update app.keys set expires_at = now() + interval '1 day' where id = $1`);
    await becomes(undefined);
  });

  it('follows its caps at once', async () => {
    await change(`update app.keys set cap_per_request_ap = 1 where id = $1`);
    await becomes('request_over_key_cap');
    await change(`update app.keys set cap_per_request_ap = null where id = $1`);
    await becomes(undefined);
  });

  it('follows its list of models, and its account’s, at once', async () => {
    await change(`update app.keys set allowed_models = array['another'] where id = $1`);
    await becomes('model_not_allowed');
    await change(`update app.keys set allowed_models = array['${MODEL}'] where id = $1`);
    await becomes(undefined);
    await service.pool.query(`update app.accounts set allowed_models = array['another'] where id = $1`, [
      caller.accountId,
    ]);
    await becomes('model_not_allowed');
  });

  it('follows its scopes and its rate at once', async () => {
    await change(`update app.keys set scopes = array['tts'] where id = $1`);
    await eventually(
      async () => expect((await service.chat(caller)).json.required_scope).to.equal('llm'),
      1000,
    );
    await change(`update app.keys set scopes = array['llm'], rate_per_minute = 1 where id = $1`);
    await becomes('rate_limited');
  });

  it('is known again after the connection that tells of changes was lost', async () => {
    await service.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'svc-ingress-listen'`,
    );
    await change(`select app.revoke_key($1, 'test')`);
    await becomes('key_revoked');
  });
});
