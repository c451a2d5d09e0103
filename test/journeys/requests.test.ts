/** Waiting, polling, listing and cancelling requests, and making one twice under an Idempotency-Key. */
import { expect } from 'chai';
import { afterEach, beforeEach, describe, it } from 'mocha';
import { waitUntilBlocked } from '../helpers/database.ts';
import {
  type Answer,
  type CallOptions,
  DEFAULT_COST_AP,
  eventually,
  MODEL,
  makeGate,
  type TestCaller,
  withTestService,
} from '../helpers/service.ts';
import { openStream } from './streams.ts';

const EDGE_WAIT_SECONDS = 0.25;
const ASYNC: CallOptions = { headers: { prefer: 'respond-async' } };
const idOf = (answer: Answer): string => answer.headers.get('x-svc-request-id') ?? '';

describe('a request that outlives its connection', () => {
  const service = withTestService({ config: { edgeWaitSeconds: EDGE_WAIT_SECONDS } });
  let caller: TestCaller;
  beforeEach(async () => {
    caller = await service.makeCaller({ balanceAp: 10_000 });
  });
  afterEach(() => service.upstream.reset());

  const look = (id: string, by = caller) => service.get(`/v1/requests/${id}`, by);
  const finished = (id: string, state = 'succeeded') =>
    eventually(async () => {
      const answer = await look(id);
      expect(answer.json.status).to.equal(state);
      return answer;
    });

  it('is answered 202 at the edge limit, goes on, and is polled to its result', async () => {
    const gate = makeGate();
    service.upstream.programNext({ gate: gate.passed, content: 'At last.' });
    const accepted = await service.chat(caller);
    const id = idOf(accepted);
    expect(accepted.status).to.equal(202);
    expect(accepted.json).to.deep.equal({
      id,
      status: 'queued',
      status_url: `${service.urls[0]}/v1/requests/${id}`,
    });
    expect(accepted.headers.get('location')).to.equal(`/v1/requests/${id}`);
    expect(accepted.headers.get('retry-after')).to.equal('2');
    expect(accepted.headers.has('x-svc-ap-cost')).to.equal(false);

    const waiting = await finished(id, 'running');
    expect(waiting.headers.get('retry-after')).to.equal('2');
    expect(waiting.json).to.include({
      id,
      object: 'request',
      area: 'llm',
      model: MODEL,
      ap_cost: null,
      finished_at: null,
    });
    expect(waiting.json.held_ap)
      .to.equal((await service.balanceOf(caller.accountId)).heldAp)
      .and.to.be.above(200);
    expect(waiting.json.started_at).to.be.a('string');
    expect(waiting.json).to.not.have.any.keys('result', 'error');

    gate.open();
    const done = await finished(id);
    expect(done.headers.has('retry-after')).to.equal(false);
    expect(done.json).to.include({ held_ap: 0, ap_cost: DEFAULT_COST_AP, error_code: null });
    expect(done.json.usage).to.deep.equal({ prompt_tokens: 9, completion_tokens: 5 });
    expect(done.json.result).to.include({ id: `chatcmpl-${id}`, object: 'chat.completion', model: MODEL });
    expect(done.json.result.choices[0].message.content).to.equal('At last.');
    expect(Date.parse(done.json.created_at)).to.be.at.most(Date.parse(done.json.started_at));
    expect(Date.parse(done.json.started_at)).to.be.at.most(Date.parse(done.json.finished_at));
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
  });

  it('has its result byte for byte as it was stored', async () => {
    const { json } = await service.chat(caller, {}, ASYNC);
    const { id, result } = (await finished(json.id)).json;
    const stored = '{"id": "x",\n "probability": 1.0, "content": "caf\\u00e9 猫"}';
    await service.pool.query('update app.request_results set body = $2 where request_id = $1', [id, stored]);
    const again = await look(id);
    expect(result.object).to.equal('chat.completion');
    expect(again.text.endsWith(`,"result":${stored}}`)).to.equal(true);
    expect(again.json).to.include({ id, status: 'succeeded', ap_cost: DEFAULT_COST_AP });
    expect(again.headers.get('content-type')).to.equal('application/json; charset=utf-8');
  });

  it('is answered 202 at once with `Prefer: respond-async`, among other preferences too', async () => {
    const gate = makeGate();
    for (const prefer of ['respond-async', 'wait=10, respond-async', 'Respond-Async; foo=1']) {
      service.upstream.programNext({ gate: gate.passed });
      expect((await service.chat(caller, {}, { headers: { prefer } })).status).to.equal(202);
    }
    gate.open();
    service.upstream.programNext({});
    expect(
      (await service.chat(caller, {}, { headers: { prefer: 'respond-asynchronously' } })).status,
    ).to.equal(200);
  });

  it('that fails is polled to its error, in the language of whoever asks', async () => {
    service.upstream.programNext({ status: 400, error: { code: 'content_filter' } });
    const { json } = await service.chat(caller, {}, ASYNC);
    const done = await finished(json.id, 'failed');
    expect(done.json).to.include({ error_code: 'content_moderated', ap_cost: 0, held_ap: 0 });
    expect(done.json.error).to.include({ code: 'content_moderated' });
    const inJapanese = await service.get(`/v1/requests/${json.id}`, {
      ...caller,
      headers: { 'accept-language': 'ja' },
    });
    expect(inJapanese.json.error.message).to.match(/[ぁ-ん]/);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([]);
  });

  it('that was streamed is put together for whoever polls', async () => {
    const toolCalls = (fields: object) => ({
      choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...fields }] }, finish_reason: null }],
    });
    const events = [
      { choices: [{ index: 0, delta: { role: 'assistant', content: 'Let me ' }, finish_reason: null }] },
      { choices: [{ index: 0, delta: { content: 'see.' }, finish_reason: null }] },
      toolCalls({ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a"' } }),
      toolCalls({ function: { arguments: ':1}' } }),
      { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 } },
    ];
    service.upstream.programNext({
      rawBody: [...events.map((event) => `data: ${JSON.stringify(event)}\n\n`), 'data: [DONE]\n\n'],
    });
    const streamed = await service.chat(caller, { stream: true, stream_options: { include_usage: true } });
    const { json } = await look(idOf(streamed));
    expect(json).to.include({ status: 'succeeded', stream: true, ap_cost: DEFAULT_COST_AP });
    expect(json.result).to.deep.include({
      id: `chatcmpl-${idOf(streamed)}`,
      object: 'chat.completion',
      ap_cost: DEFAULT_COST_AP,
      usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
    });
    expect(json.result.choices).to.deep.equal([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Let me see.',
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
        },
        finish_reason: 'tool_calls',
        logprobs: null,
      },
    ]);
  });

  it('past the retention keeps its metadata only', async () => {
    const id = idOf(await service.chat(caller));
    await service.pool.query(
      `update app.requests set created_at = created_at - interval '25 hours' where id = $1`,
      [id],
    );
    const { json } = await look(id);
    expect(json).to.deep.include({
      status: 'succeeded',
      ap_cost: DEFAULT_COST_AP,
      result: null,
      result_expired: true,
    });
  });

  it('is nobody else’s to see or to cancel', async () => {
    const stranger = await service.makeCaller();
    const gate = makeGate();
    service.upstream.programNext({ gate: gate.passed });
    const { json } = await service.chat(caller, {}, ASYNC);
    for (const answer of [
      await look(json.id, stranger),
      await service.post(`/v1/requests/${json.id}/cancel`, stranger),
    ]) {
      expect([answer.status, answer.json.error.code]).to.deep.equal([404, 'not_found']);
    }
    expect((await service.get('/v1/requests', stranger)).json.data).to.deep.equal([]);
    gate.open();
    await finished(json.id);
  });

  describe('in the list', () => {
    it('comes newest first, by pages and filters', async () => {
      const ids: string[] = [];
      for (let index = 0; index < 5; index += 1) {
        if (index === 1) service.upstream.programNext({ status: 400 });
        ids.unshift(idOf(await service.chat(caller)));
      }
      const list = async (query: string) => (await service.get(`/v1/requests?${query}`, caller)).json;
      const idsOf = (page: { data: { id: string }[] }) => page.data.map((row) => row.id);

      const whole = await list('');
      expect(whole).to.include({ object: 'list', has_more: false, next_cursor: null });
      expect(idsOf(whole)).to.deep.equal(ids);
      expect(whole.data[0]).to.not.have.property('result');

      const first = await list('limit=2');
      expect([idsOf(first), first.has_more]).to.deep.equal([ids.slice(0, 2), true]);
      const second = await list(`limit=2&cursor=${first.next_cursor}`);
      expect([idsOf(second), second.has_more]).to.deep.equal([ids.slice(2, 4), true]);
      const third = await list(`limit=2&cursor=${second.next_cursor}`);
      expect([idsOf(third), third.has_more, third.next_cursor]).to.deep.equal([ids.slice(4), false, null]);

      expect(idsOf(await list('state=failed'))).to.deep.equal([ids[3]]);
      expect(idsOf(await list('state=succeeded&limit=1'))).to.deep.equal([ids[0]]);
      expect(idsOf(await list('area=llm'))).to.deep.equal(ids);
      expect(idsOf(await list('area=tts'))).to.deep.equal([]);
      const hour = 3_600_000;
      const before = new Date(Date.now() - hour).toISOString();
      const after = new Date(Date.now() + hour).toISOString();
      expect(idsOf(await list(`from=${before}&to=${after}`))).to.deep.equal(ids);
      expect(idsOf(await list(`from=${after}`))).to.deep.equal([]);
      expect(idsOf(await list(`to=${before}`))).to.deep.equal([]);
      // long before and long after ids have times
      expect(idsOf(await list('from=1900-01-01'))).to.deep.equal(ids);
      expect(idsOf(await list('to=1900-01-01'))).to.deep.equal([]);
      expect(idsOf(await list(`to=${encodeURIComponent('+200000-01-01T00:00:00Z')}`))).to.deep.equal(ids);
      expect(idsOf(await list(`from=${encodeURIComponent('+200000-01-01T00:00:00Z')}`))).to.deep.equal([]);
    });

    it('refuses filters that mean nothing', async () => {
      for (const query of [
        'limit=0',
        'limit=101',
        'limit=1.5',
        'limit=x',
        'cursor=x',
        'state=lost',
        'area=moon',
        'from=soon',
        'to=x',
        'state=failed&state=queued',
      ]) {
        const answer = await service.get(`/v1/requests?${query}`, caller);
        expect([answer.status, answer.json.error?.code, answer.json.param], query).to.deep.equal([
          400,
          'invalid_parameter',
          query.split('=')[0],
        ]);
      }
    });
  });

  describe('that is cancelled', () => {
    const cancel = (id: string) => service.post(`/v1/requests/${id}/cancel`, caller);

    it('while running, is voided, and its provider call aborted', async () => {
      service.upstream.programNext({ hang: 'before-headers' });
      const { json } = await service.chat(caller, {}, ASYNC);
      const call = await service.upstream.waitForCall();
      const answer = await cancel(json.id);
      expect(answer.status).to.equal(200);
      expect(answer.json).to.include({ id: json.id, status: 'cancelled', ap_cost: 0, held_ap: 0 });
      await call.aborted;
      expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp: 10_000, heldAp: 0 });
      const looked = (await look(json.id)).json;
      expect(looked).to.include({ status: 'cancelled', error_code: null });
      expect(looked, 'no advice to try again').to.not.have.any.keys('error', 'result');
    });

    it('while somebody waits for it at the same ingress, is told to them at once', async () => {
      service.upstream.programNext({ hang: 'before-headers' });
      const patient = await service.makeCaller();
      // through another service's clock the edge limit would answer first: here only the cancel can
      const waiting = service.chat(patient, {}, { web: 0 });
      await service.upstream.waitForCall();
      const [{ id }] = (await service.get('/v1/requests', patient)).json.data;
      const cancelled = await service.post(`/v1/requests/${id}/cancel`, patient);
      expect(cancelled.json.status).to.equal('cancelled');
      const answer = await waiting;
      expect([answer.status, answer.json.error?.code, answer.json.status]).to.deep.equal([
        503,
        'generation_failed',
        'cancelled',
      ]);
      // the official client would try a 503 again by itself
      expect(answer.headers.get('x-should-retry')).to.equal('false');
    });

    it('in the middle of its stream, ends the stream and charges what was produced', async () => {
      service.upstream.programNext({ chunks: ['one ', 'two ', 'three'], hang: 2 });
      const response = await fetch(`${service.urls[0]}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${caller.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: MODEL,
          messages: [{ role: 'user', content: 'Hello' }],
          max_tokens: 50,
          stream: true,
        }),
      });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      while (!text.includes('two ')) text += (await reader?.read())?.value ?? '';
      const id = response.headers.get('x-svc-request-id') ?? '';
      const answer = await cancel(id);
      // "user", "Hello" and the frame of a message: 8; "one two ": 3
      const costAp = 8 + 2 * 3;
      expect(answer.json).to.include({ status: 'cancelled', ap_cost: costAp });
      for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
        text += part.value;
      expect(text).to.match(/data: \{"error":\{"code":"generation_failed".*"status":"cancelled"\}\n\n$/);
      expect(text).to.not.include('[DONE]');
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([costAp]);
      expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp: 10_000 - costAp, heldAp: 0 });
    });

    it('when it has finished, stays as it was', async () => {
      const id = idOf(await service.chat(caller));
      const answer = await cancel(id);
      expect([answer.status, answer.json.status, answer.json.ap_cost]).to.deep.equal([
        200,
        'succeeded',
        DEFAULT_COST_AP,
      ]);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
    });

    it('of an account whose balance is locked is 503 after a while, and keeps nobody else waiting', async () => {
      caller = await service.makeCaller({ balanceAp: 10_000, ratePerMinute: 1000 });
      service.upstream.program(MODEL, { hang: 'before-headers' });
      const made = await Promise.all(Array.from({ length: 20 }, () => service.chat(caller, {}, ASYNC)));
      const other = await service.makeCaller();
      const lock = await service.pool.connect();
      await lock.query('begin; set local idle_in_transaction_session_timeout = 0');
      await lock.query('select from app.balances where account_id = $1 for update', [caller.accountId]);
      const cancels = made.map(({ json }) => cancel(json.id));
      await waitUntilBlocked(service.pool, 'cancel_request');
      const begun = Date.now();
      expect((await service.get('/v1/credits', other)).status).to.equal(200);
      expect(Date.now() - begun).to.be.below(1000);
      for (const answer of await Promise.all(cancels)) {
        expect([answer.status, answer.json.error?.code]).to.deep.equal([503, 'generation_failed']);
        expect(answer.headers.get('retry-after')).to.equal('2');
      }
      await lock.query('rollback');
      lock.release();
      for (const { json } of made) expect((await cancel(json.id)).json.status).to.equal('cancelled');
      expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp: 10_000, heldAp: 0 });
    });

    it('twice, is cancelled once', async () => {
      service.upstream.programNext({ hang: 'before-headers' });
      const { json } = await service.chat(caller, {}, ASYNC);
      await service.upstream.waitForCall();
      const answers = await Promise.all([cancel(json.id), cancel(json.id), cancel(json.id)]);
      for (const answer of answers) expect(answer.json.status).to.equal('cancelled');
    });
  });
});

describe('a request that runs longer than the edge waits', () => {
  const service = withTestService({ config: { edgeWaitSeconds: 2 } });

  it('is said to be running, where it is known to be', async () => {
    const caller = await service.makeCaller();
    const gate = makeGate();
    service.upstream.programNext({ gate: gate.passed });
    const accepted = await service.chat(caller);
    gate.open();
    expect([accepted.status, accepted.json.status]).to.deep.equal([202, 'running']);
  });
});

describe('a request that no worker has taken', () => {
  const service = withTestService({
    workers: 0,
    config: { edgeWaitSeconds: EDGE_WAIT_SECONDS, streamCommentSeconds: 0.05 },
  });

  it('is cancelled in the queue, and everything returned', async () => {
    const caller = await service.makeCaller({ balanceAp: 1000 });
    const { json } = await service.chat(caller);
    expect((await service.balanceOf(caller.accountId)).heldAp).to.be.above(200);
    const state = await service.get(`/v1/requests/${json.id}`, caller);
    expect([state.json.status, state.json.started_at]).to.deep.equal(['queued', null]);
    const answer = await service.post(`/v1/requests/${json.id}/cancel`, caller);
    expect(answer.json).to.include({ status: 'cancelled', ap_cost: 0, held_ap: 0 });
    expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp: 1000, heldAp: 0 });
  });

  it('is cancelled in the queue although it is a stream', async () => {
    const caller = await service.makeCaller({ balanceAp: 1000 });
    const stream = await openStream(service, caller);
    const answer = await service.post(`/v1/requests/${stream.id}/cancel`, caller);
    expect(answer.json).to.include({ status: 'cancelled', ap_cost: 0, held_ap: 0 });
    await stream.readAll();
    expect(stream.text).to.match(/"code":"generation_failed"/);
    expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp: 1000, heldAp: 0 });
  }).timeout(5000);

  it('and its health is said to be bad', async () => {
    const { status, json } = await service.get('/health');
    expect([status, json.workers]).to.deep.equal([503, 'down']);
  });
});

describe('an Idempotency-Key', () => {
  const service = withTestService();
  let caller: TestCaller;
  beforeEach(async () => {
    caller = await service.makeCaller({ balanceAp: 10_000 });
  });
  afterEach(() => service.upstream.reset());

  const chat = (key: string, body: object = {}, by = caller) =>
    service.chat(by, body, { headers: { 'idempotency-key': key } });

  it('on thirty requests at once makes one provider call; the others are told its id, and later get its answer free', async () => {
    const gate = makeGate();
    service.upstream.programNext({ gate: gate.passed, content: 'Once.' });
    const answering = Array.from({ length: 30 }, () => chat('thirty'));
    await service.upstream.waitForCall();
    const refused: Answer[] = [];
    let first: Answer | undefined;
    for (const answer of answering) {
      void answer.then((settled) => {
        if (settled.status === 409) refused.push(settled);
        else first = settled;
      });
    }
    await eventually(() => expect(refused).to.have.lengthOf(29));
    gate.open();
    await Promise.all(answering);
    expect(first?.status).to.equal(200);
    expect(first?.headers.has('idempotency-replayed')).to.equal(false);
    for (const { json, headers } of refused) {
      expect(json.error.code).to.equal('idempotency_in_progress');
      expect(json.request_id).to.equal(first && idOf(first));
      expect(headers.get('retry-after')).to.equal('1');
    }

    for (let round = 0; round < 3; round += 1) {
      const replayed = await chat('thirty');
      expect(replayed.status).to.equal(200);
      expect(replayed.text).to.equal(first?.text);
      expect(replayed.headers.get('idempotency-replayed')).to.equal('true');
      expect(replayed.headers.get('x-svc-ap-cost')).to.equal('0');
      expect(replayed.headers.get('x-svc-model')).to.equal(MODEL);
    }
    expect(service.upstream.count()).to.equal(1);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
    expect(await service.balanceOf(caller.accountId)).to.include({
      balanceAp: 10_000 - DEFAULT_COST_AP,
      heldAp: 0,
    });
  });

  it('with another body is a conflict, while the first runs and after it', async () => {
    const gate = makeGate();
    service.upstream.programNext({ gate: gate.passed });
    const first = chat('body');
    await service.upstream.waitForCall();
    expect((await chat('body', { seed: 1 })).json.error.code).to.equal('idempotency_conflict');
    gate.open();
    await first;
    const conflict = await chat('body', { seed: 1 });
    expect([conflict.status, conflict.json.request_id]).to.deep.equal([409, idOf(await first)]);
    expect(service.upstream.count()).to.equal(1);
  });

  it('is free again after a failure and after a refusal, which cost nothing', async () => {
    service.upstream.programNext({ status: 400 });
    expect((await chat('again')).status).to.equal(400);
    const second = await chat('again');
    expect([second.status, second.headers.has('idempotency-replayed')]).to.deep.equal([200, false]);
    expect(service.upstream.count()).to.equal(2);

    const poor = await service.makeCaller({ balanceAp: 1 });
    expect((await chat('poor', {}, poor)).status).to.equal(402);
    await service.pool.query(`select app.credit_account($1, 1000, 'purchase', 'test', 'test')`, [
      poor.accountId,
    ]);
    expect((await chat('poor', {}, poor)).status).to.equal(200);
  });

  it('is free again after a cancelled request', async () => {
    service.upstream.programNext({ hang: 'before-headers' });
    const first = await service.chat(
      caller,
      {},
      { headers: { 'idempotency-key': 'cancelled', prefer: 'respond-async' } },
    );
    await service.upstream.waitForCall();
    await service.post(`/v1/requests/${first.json.id}/cancel`, caller);
    expect((await chat('cancelled')).status).to.equal(200);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
  });

  it('replays a stream, event by event', async () => {
    const body = { stream: true, stream_options: { include_usage: true } };
    const first = await chat('stream', body);
    const second = await chat('stream', body);
    expect(first.text)
      .to.include('"ap_cost"')
      .and.to.match(/data: \[DONE\]\n\n$/);
    expect(second.text).to.equal(first.text);
    expect(second.headers.get('content-type')).to.match(/^text\/event-stream/);
    expect(second.headers.get('idempotency-replayed')).to.equal('true');
    expect(service.upstream.count()).to.equal(1);
    expect(await service.chargesOf(caller.accountId)).to.deep.equal([DEFAULT_COST_AP]);
  });

  it('belongs to its account, and to 24 hours', async () => {
    const other = await service.makeCaller();
    await chat('shared');
    expect((await chat('shared', {}, other)).headers.has('idempotency-replayed')).to.equal(false);
    await service.pool.query(`update app.idempotency_keys set created_at = now() - interval '25 hours'`);
    expect((await chat('shared', { seed: 2 })).status).to.equal(200);
    expect(service.upstream.count()).to.equal(3);
  });

  it('of the longest and oddest kind is taken', async () => {
    for (const key of ['k'.repeat(255), `"a,b";c=d`, '!', 'x y']) {
      expect((await chat(key)).status).to.equal(200);
      expect((await chat(key)).headers.get('idempotency-replayed')).to.equal('true');
    }
  });
});
