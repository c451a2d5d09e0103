/**
 * Every code of the error catalogue that an area built so far can answer with, provoked over HTTP: status, body, siblings, both
 * languages by both ways of choosing one, and the proof that a refusal leaves nothing behind. Then the order of the checks.
 */
import { expect } from 'chai';
import { before, describe, it } from 'mocha';
import { ERROR_CATALOGUE } from '../../core/error-catalogue.ts';
import { type ErrorCode, errorMessage, isErrorCode, type Language } from '../../core/errors.ts';
import { makeGalleryPrice } from '../helpers/gallery.ts';
import { IMAGE_MODEL, makeImageModel } from '../helpers/image-models.ts';
import {
  type Answer,
  type CallerOptions,
  type CallOptions,
  chatBody,
  eventually,
  MAX_TOKENS,
  MODEL,
  makeGate,
  type TestCaller,
  type TestService,
  withTestService,
} from '../helpers/service.ts';
import { makeSpeechModels } from '../helpers/speech-models.ts';
import type { Case } from './error-case.ts';
import { GALLERY_CASES } from './gallery-errors.ts';
import { IMAGE_CASES } from './image-errors.ts';
import { SPEECH_CASES } from './speech-errors.ts';

/**
 * Codes of areas that are not built yet, and the route whose first version must bring a test of them here: as soon as the
 * route exists, this list has to shrink.
 */
const NOT_BUILT: Partial<Record<ErrorCode, string>> = {
  invalid_prefix: 'POST /v1/me/keys',
  api_key_not_found: 'DELETE /v1/me/keys/1',
  invalid_user_token: 'GET /v1/me',
  unauthorized: 'POST /v1/certs/1/claim/approve',
  forbidden_scope: 'POST /v1/certs/1/approve',
  invalid_state: 'POST /v1/certs/1/revoke',
  service_budget_exhausted: 'GET /v1/services',
  service_closed: 'GET /v1/services',
  service_stage_unavailable: 'GET /v1/services',
  paid_requires_user_billing: 'GET /v1/services',
  sponsor_stage_no_on_behalf: 'GET /v1/services',
  subject_required: 'GET /v1/services',
};

const CHAT = '/v1/chat/completions';
const GRANT_CAP_AP = 5000;
const IP_DAILY_CAP = 3;
const SECONDS_A_DAY = 86_400;

/** A chat call by a new caller. */
function chat(
  caller: CallerOptions = {},
  body: unknown = chatBody(),
  siblings: object = {},
  headers: Record<string, string> = {},
): Case['given'] {
  return async (service, as) => {
    const { secret } = await service.makeCaller({ ...caller, ...as });
    return {
      siblings,
      call: (options) =>
        service.post(CHAT, { secret, body, ...options, headers: { ...headers, ...options.headers } }),
    };
  };
}

function get(path: string, caller: CallerOptions = {}): Case['given'] {
  return async (service, as) => {
    const { secret } = await service.makeCaller({ ...caller, ...as });
    return { call: (options) => service.get(path, { secret, ...options }) };
  };
}

const withKey = (headers: Record<string, string>): Case['given'] => {
  return (service) => ({
    call: (options) =>
      service.post(CHAT, { body: chatBody(), ...options, headers: { ...headers, ...options.headers } }),
  });
};

const HELLO = [{ role: 'user', content: 'Hello' }];
const nextDay = (answer: Answer): object => ({ resets_at: answer.json.resets_at });

const CASES: readonly Case[] = [
  { code: 'invalid_json', when: 'the body is cut short', given: chat({}, '{"model":') },
  { code: 'invalid_json', when: 'the body is empty', given: chat({}, '') },
  {
    code: 'invalid_json',
    when: 'the body is of another type',
    given: chat({}, 'hello', {}, { 'content-type': 'text/plain' }),
  },
  {
    code: 'invalid_json',
    when: 'the body is compressed',
    given: chat({}, '{}', {}, { 'content-encoding': 'gzip' }),
  },
  {
    code: 'invalid_parameter',
    when: 'a value is out of range',
    given: chat({}, chatBody({ temperature: 3 }), { param: 'temperature' }),
  },
  { code: 'invalid_parameter', when: 'the body is no object', given: chat({}, '[]', { param: 'body' }) },
  {
    code: 'invalid_parameter',
    when: 'a field is missing',
    given: chat({}, { model: MODEL }, { param: 'messages' }),
  },
  {
    code: 'invalid_parameter',
    when: 'a field deep inside is of the wrong type',
    given: chat(
      {},
      chatBody({ messages: [...HELLO, { role: 'user', content: [{ type: 'text', text: 7 }] }] }),
      {
        param: 'messages[1].content[0].text',
      },
    ),
  },
  {
    code: 'invalid_parameter',
    when: 'more output is asked for than the model has',
    given: chat({}, chatBody({ max_tokens: MAX_TOKENS + 1 }), { param: 'max_tokens', maximum: MAX_TOKENS }),
  },
  {
    code: 'invalid_parameter',
    when: 'both names of the output cap are given',
    given: chat({}, chatBody({ max_completion_tokens: 5 }), { param: 'max_completion_tokens' }),
  },
  {
    code: 'invalid_parameter',
    when: 'stream options come without a stream',
    given: chat({}, chatBody({ stream_options: { include_usage: true } }), { param: 'stream_options' }),
  },
  {
    code: 'invalid_parameter',
    when: 'the Idempotency-Key is too long',
    given: chat({}, chatBody(), { param: 'Idempotency-Key' }, { 'idempotency-key': 'k'.repeat(256) }),
  },
  {
    code: 'invalid_parameter',
    when: 'the Idempotency-Key is not ASCII',
    given: chat({}, chatBody(), { param: 'Idempotency-Key' }, { 'idempotency-key': 'caf\u00e9' }),
  },
  {
    code: 'invalid_parameter',
    when: 'the Idempotency-Key is empty',
    given: chat({}, chatBody(), { param: 'Idempotency-Key' }, { 'idempotency-key': '' }),
  },
  {
    code: 'invalid_parameter',
    when: 'the provider says that the request is wrong',
    leavesFailedRequest: true,
    given: async (service, as) => {
      service.upstream.programNext({ status: 400, error: { message: 'Too many tools.', param: 'tools' } });
      return chat({}, chatBody(), { param: 'tools', provider_message: 'Too many tools.' })(service, as);
    },
  },
  {
    code: 'unsupported_parameter',
    when: 'a field is unknown',
    given: chat({}, chatBody({ colour: 'red' }), { param: 'colour' }),
  },
  {
    code: 'unsupported_parameter',
    when: 'a field deep inside is unknown',
    given: chat(
      {},
      chatBody({
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x', zoom: 2 } }] }],
      }),
      { param: 'messages[0].content[0].image_url.zoom' },
    ),
  },

  { code: 'not_authenticated', when: 'there is no credential', isStranger: true, given: withKey({}) },
  {
    code: 'invalid_api_key',
    when: 'the key is unknown',
    isStranger: true,
    given: withKey({ authorization: `Bearer svc_live_${'x'.repeat(43)}` }),
  },
  {
    code: 'invalid_api_key',
    when: 'the key is malformed',
    isStranger: true,
    given: withKey({ authorization: 'Bearer sk-1' }),
  },
  {
    code: 'invalid_api_key',
    when: 'the scheme is another',
    isStranger: true,
    given: withKey({ authorization: 'Basic c3ZjOjE=' }),
  },
  {
    code: 'key_revoked',
    when: 'the key was revoked',
    given: async (service, as) => {
      const { secret, keyId } = await service.makeCaller(as);
      await service.pool.query(`select app.revoke_key($1, 'test')`, [keyId]);
      return { call: (options) => service.post(CHAT, { secret, body: chatBody(), ...options }) };
    },
  },
  {
    code: 'key_expired',
    when: 'the key is past its expiry',
    given: chat({ expiresAt: new Date(Date.now() - 1000) }),
  },
  { code: 'key_expired', when: 'the beta programme is over', given: chat({ prefix: 'svc_beta_' }) },

  {
    code: 'insufficient_ap',
    when: 'the balance is below the hold',
    given: async (service, as) => {
      const prepared = await chat({ balanceAp: 50 })(service, as);
      return {
        ...prepared,
        siblings: ({ json }) => ({ required_ap: json.required_ap, available_ap: 50, held_ap: 0 }),
      };
    },
  },

  {
    code: 'account_too_new',
    when: 'the grant is wanted and the account is young',
    given: chat({ balanceAp: 0, createdAt: new Date(), hasCard: true }),
  },
  {
    code: 'card_required',
    when: 'a live key spends granted AP without a card',
    given: chat({ fundedBy: 'grant' }),
  },
  {
    code: 'enterprise_manual_approval',
    when: 'nobody has approved the account',
    given: chat({ kind: 'enterprise' }),
  },
  {
    code: 'model_not_allowed',
    when: 'the model is not on the key’s list',
    given: chat({ allowedModels: [] }, chatBody(), { param: 'model' }),
  },
  {
    code: 'request_over_key_cap',
    when: 'the hold is above the cap per request',
    given: async (service, as) => {
      const prepared = await chat({ capPerRequestAp: 10 })(service, as);
      return { ...prepared, siblings: ({ json }) => ({ cap_ap: 10, requested_ap: json.requested_ap }) };
    },
  },
  ...(['capDailyAp', 'capMonthlyAp'] as const).map(
    (cap): Case => ({
      code: 'request_over_key_cap',
      when: `the hold would pass ${cap}`,
      retryAfter: [1, 31 * SECONDS_A_DAY],
      given: async (service, as) => {
        const prepared = await chat({ [cap]: 20 })(service, as);
        return {
          ...prepared,
          siblings: (answer) => ({ cap_ap: 20, requested_ap: answer.json.requested_ap, ...nextDay(answer) }),
        };
      },
    }),
  ),

  {
    code: 'model_not_found',
    when: 'there is no such model',
    given: chat({}, chatBody({ model: 'no-such' }), { param: 'model' }),
  },
  {
    code: 'model_not_found',
    when: 'the model is of another type',
    given: async (service, as) => {
      await service.pool.query(
        `insert into app.models (id, type) values ('speech-test', 'speech') on conflict do nothing`,
      );
      // one without a price is not offered
      await service.pool.query(
        `select app.publish_price('speech-test', 'per_1k_characters', null, null, 10, null, null, null, 'test')`,
      );
      await eventually(async () =>
        expect((await service.get('/v1/models/speech-test')).status).to.equal(200),
      );
      return chat({}, chatBody({ model: 'speech-test' }), { param: 'model' })(service, as);
    },
  },
  {
    code: 'no_credits_record',
    when: 'nothing was ever credited',
    given: get('/v1/credits', { balanceAp: 0 }),
  },
  {
    code: 'not_found',
    when: 'the path is unknown',
    isStranger: true,
    given: (service) => ({ call: (options) => service.get('/v1/nothing', options) }),
  },
  {
    code: 'not_found',
    when: 'the method is another',
    isStranger: true,
    status: 405,
    given: (service) => ({ call: (options) => service.call('DELETE', CHAT, options) }),
  },
  {
    code: 'not_found',
    when: 'the request id is nobody’s',
    given: get('/v1/requests/01900000-0000-7000-8000-000000000000'),
  },
  { code: 'not_found', when: 'the request id is none', given: get('/v1/requests/1') },

  {
    code: 'idempotency_conflict',
    when: 'the key came with another body before',
    given: async (service, as) => {
      const { secret } = await service.makeCaller(as);
      const headers = { 'idempotency-key': 'one' };
      const first = await service.post(CHAT, { secret, body: chatBody(), headers });
      return {
        siblings: { request_id: first.headers.get('x-svc-request-id') },
        call: (options) =>
          service.post(CHAT, {
            secret,
            body: chatBody({ seed: 1 }),
            ...options,
            headers: { ...headers, ...options.headers },
          }),
      };
    },
  },
  {
    code: 'idempotency_in_progress',
    when: 'the first request of the key is running',
    retryAfter: [1, 1],
    given: async (service, as) => {
      const { secret } = await service.makeCaller(as);
      const headers = { 'idempotency-key': 'two' };
      const gate = makeGate();
      service.upstream.reset();
      service.upstream.programNext({ gate: gate.passed });
      const first = service.post(CHAT, { secret, body: chatBody(), headers });
      await service.upstream.waitForCall();
      return {
        siblings: ({ json }) => {
          expect(json.request_id).to.be.a('string');
          return { request_id: json.request_id };
        },
        call: (options) =>
          service.post(CHAT, {
            secret,
            body: chatBody(),
            ...options,
            headers: { ...headers, ...options.headers },
          }),
        release: async () => {
          gate.open();
          expect((await first).status).to.equal(200);
        },
      };
    },
  },
  {
    code: 'expired',
    when: 'the answer to be replayed is no longer kept',
    given: async (service, as) => {
      const { secret } = await service.makeCaller(as);
      const headers = { 'idempotency-key': 'three' };
      const first = await service.post(CHAT, { secret, body: chatBody(), headers });
      await service.pool.query('delete from app.request_results where request_id = $1', [
        first.headers.get('x-svc-request-id'),
      ]);
      return {
        call: (options) =>
          service.post(CHAT, {
            secret,
            body: chatBody(),
            ...options,
            headers: { ...headers, ...options.headers },
          }),
      };
    },
  },

  {
    code: 'content_moderated',
    when: 'the provider’s safety system declines',
    leavesFailedRequest: true,
    given: async (service, as) => {
      service.upstream.programNext({ status: 400, error: { code: 'content_filter' } });
      return chat()(service, as);
    },
  },
  {
    code: 'rate_limited',
    when: 'the key’s minute is used up',
    retryAfter: [1, 60],
    given: async (service, as) => {
      const { secret } = await service.makeCaller({ ratePerMinute: 1, ...as });
      await service.get('/v1/credits', { secret });
      return { call: (options) => service.post(CHAT, { secret, body: chatBody(), ...options }) };
    },
  },
  {
    code: 'user_daily_cap',
    when: 'granted AP are spent beyond the day’s allowance',
    retryAfter: [1, SECONDS_A_DAY],
    given: chat({ fundedBy: 'grant', hasCard: true }, chatBody({ max_tokens: MAX_TOKENS }), {
      cap_ap: GRANT_CAP_AP,
    }),
  },

  {
    code: 'ip_daily_cap',
    when: 'the address has used up its day',
    isStranger: true,
    retryAfter: [1, SECONDS_A_DAY],
    given: async (service) => {
      const inspect = (options: CallOptions = {}) =>
        service.post('/v1/images/inspect', { body: 'no picture', ...options });
      for (let count = 0; count < IP_DAILY_CAP; count += 1) await inspect();
      return { call: inspect };
    },
  },

  {
    code: 'internal_error',
    when: 'the database does not know our own function',
    logs: true,
    given: async (service, as) => {
      await service.pool.query(
        'alter function app.submit_requests(json, json, bigint) rename to submit_requests_away',
      );
      return {
        ...(await chat()(service, as)),
        release: () =>
          service.pool.query(
            'alter function app.submit_requests_away(json, json, bigint) rename to submit_requests',
          ),
      };
    },
  },
  {
    code: 'generation_failed',
    when: 'the provider fails, whatever is tried',
    leavesFailedRequest: true,
    retryAfter: [1, 60],
    given: async (service, as) => {
      service.upstream.programNext({ status: 503 }, { status: 503 });
      return chat()(service, as);
    },
  },
];

describe('errors over HTTP', () => {
  const service = withTestService({
    config: {
      betaEndsAt: new Date(Date.now() - 1000),
      cardRequiredFrom: new Date(Date.now() - 1000),
      minimumAccountAgeHours: 24,
      grantDailyCapAp: GRANT_CAP_AP,
      ipDailyCap: IP_DAILY_CAP,
    },
  });

  before('models that draw and speak', async () => {
    await makeImageModel(service, { id: IMAGE_MODEL, provider: 'sandbox' });
    await makeGalleryPrice(service);
    await makeSpeechModels(service);
  });

  for (const item of [...CASES, ...IMAGE_CASES, ...SPEECH_CASES, ...GALLERY_CASES]) {
    it(`${item.code}: ${item.when}`, async () => {
      await expectRefusal(service, item, {}, { 'accept-language': 'en-GB, ja;q=0.5' }, 'en');
      await expectRefusal(service, item, {}, { 'accept-language': 'fr, ja;q=0.9, en;q=0.1' }, 'ja');
      if (item.isStranger) await expectRefusal(service, item, {}, {}, 'en');
      else await expectRefusal(service, item, { language: 'ja' }, { 'accept-language': 'en' }, 'ja');
    });
  }

  it('a missing scope: a body of its own shape, and nothing left', async () => {
    const { secret } = await service.makeCaller({ scopes: ['tts', 'x'], language: 'ja' });
    const before = await service.traces();
    const answer = await service.post(CHAT, { secret, body: chatBody() });
    expect(answer.status).to.equal(403);
    expect(answer.json).to.deep.equal({
      error: 'API key does not have required scope: llm',
      required_scope: 'llm',
      current_scopes: ['tts', 'x'],
    });
    expect(await service.traces()).to.deep.equal(before);
  });

  it('every code of the catalogue is provoked here, or named as not built', () => {
    const provoked = new Set([
      ...[...CASES, ...IMAGE_CASES, ...SPEECH_CASES, ...GALLERY_CASES].map((item) => item.code),
      ...EXTRA_CODES,
    ]);
    const all = Object.keys(ERROR_CATALOGUE).filter(isErrorCode);
    const missing = all.filter((code) => !provoked.has(code) && NOT_BUILT[code] === undefined);
    expect(missing, 'neither provoked nor named').to.deep.equal([]);
    expect(
      all.filter((code) => provoked.has(code) && NOT_BUILT[code] !== undefined),
      'both',
    ).to.deep.equal([]);
  });

  for (const route of new Set(Object.values(NOT_BUILT))) {
    const codes = Object.keys(NOT_BUILT).filter((code) => NOT_BUILT[code as ErrorCode] === route);
    it(`${route} is not built: its codes (${codes.join(', ')}) need no test yet`, async () => {
      const [method, path] = route.split(' ') as [string, string];
      const answer = await service.call(method, path);
      expect(answer.status, 'built: provoke its codes above and take them off NOT_BUILT').to.equal(404);
      expect(answer.json.error.code).to.equal('not_found');
    });
  }
});

/** Provoked below, in a service of its own. */
const EXTRA_CODES: readonly ErrorCode[] = ['generation_failed'];

describe('errors over HTTP, with a queue that is too deep', () => {
  const service = withTestService({ config: { maxQueueDepth: 0 } });

  it('generation_failed: no more requests are taken', async () => {
    const item: Case = { code: 'generation_failed', when: '', given: chat(), retryAfter: [5, 5] };
    await expectRefusal(service, item, {}, { 'accept-language': 'ja' }, 'ja');
    await expectRefusal(service, item, {}, {}, 'en');
  });
});

async function expectRefusal(
  service: TestService,
  item: Case,
  as: CallerOptions,
  headers: Record<string, string>,
  language: Language,
): Promise<void> {
  const prepared = await item.given(service, as);
  const before = await service.traces();
  const answer = await prepared.call({ headers });
  const after = await service.traces();
  await prepared.release?.();

  expect(answer.status).to.equal(item.status ?? ERROR_CATALOGUE[item.code].status);
  const { error, ...siblings } = answer.json;
  expect(error).to.deep.equal({ code: item.code, message: errorMessage(item.code, language, siblings) });
  expect(error.message).to.not.match(/\{\w+\}/);
  expect(/[\u3040-\u30ff]/.test(error.message), 'Japanese').to.equal(language === 'ja');
  const expected = typeof prepared.siblings === 'function' ? prepared.siblings(answer) : prepared.siblings;
  expect(siblings).to.deep.equal(expected ?? {});
  expect(answer.headers.get('content-type')).to.match(/^application\/json/);
  expect(answer.headers.get('x-svc-request-id')).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  expect(answer.headers.has('x-svc-ap-cost')).to.equal(false);
  const retryAfter = answer.headers.get('retry-after');
  if (item.retryAfter === undefined) expect(retryAfter, 'Retry-After').to.equal(null);
  else expect(Number(retryAfter), 'Retry-After').to.be.within(...item.retryAfter);
  expect(after).to.deep.equal(
    item.leavesFailedRequest ? { ...before, requests: (before.requests as number) + 1 } : before,
  );
  expect(service.takeErrors().length > 0, 'logged').to.equal(item.logs === true);
}

/** The faults in the order in which they are looked for; each makes the same request wrong in one way. */
const FAULTS: readonly {
  readonly name: string;
  readonly code: ErrorCode | 'scope';
  readonly caller?: CallerOptions;
  readonly body?: object;
  readonly spoil?: (service: TestService, caller: TestCaller) => Promise<void>;
}[] = [
  {
    name: 'a revoked key',
    code: 'key_revoked',
    spoil: async (service, { keyId, secret }) => {
      await service.pool.query(`select app.revoke_key($1, 'test')`, [keyId]);
      await eventually(async () => expect((await service.get('/v1/key', { secret })).status).to.equal(401));
    },
  },
  {
    name: 'an account that may not spend',
    code: 'enterprise_manual_approval',
    caller: { kind: 'enterprise' },
  },
  { name: 'a missing scope', code: 'scope', caller: { scopes: ['tts'] } },
  {
    name: 'a used-up rate',
    code: 'rate_limited',
    caller: { ratePerMinute: 1 },
    spoil: async (service, { secret }) => void (await service.get('/v1/credits', { secret })),
  },
  { name: 'a bad parameter', code: 'invalid_parameter', body: { temperature: 3 } },
  { name: 'an unknown model', code: 'model_not_found', body: { model: 'no-such' } },
  { name: 'a model not allowed', code: 'model_not_allowed', caller: { allowedModels: [] } },
  { name: 'a cap', code: 'request_over_key_cap', caller: { capPerRequestAp: 1 } },
  { name: 'an empty balance', code: 'insufficient_ap', caller: { balanceAp: 1 } },
];

describe('the order of checks', () => {
  const service = withTestService();

  for (const [index, first] of FAULTS.entries()) {
    const later = FAULTS.slice(index + 1);
    const title = later.length === 0 ? 'comes last' : 'comes before whatever else is wrong';
    it(`${first.name} ${title}`, async () => {
      for (const second of [undefined, ...later]) {
        const caller = await service.makeCaller({ ...second?.caller, ...first.caller });
        // the later one is spoiled first: a revoked key could not use up its rate any more
        await second?.spoil?.(service, caller);
        await first.spoil?.(service, caller);
        const before = await service.traces();
        const answer = await service.chat(caller, { ...second?.body, ...first.body });
        const code = typeof answer.json.error === 'string' ? 'scope' : answer.json.error.code;
        expect(code, `${first.name} and ${second?.name}`).to.equal(first.code);
        expect(await service.traces()).to.deep.equal(before);
      }
      expect(service.upstream.count()).to.equal(0);
    });
  }

  it('takes a broken body after the rate, and before the model', async () => {
    const { secret } = await service.makeCaller({ ratePerMinute: 1 });
    const call = () => service.post(CHAT, { secret, body: '{"model": "no-such"' });
    expect((await call()).json.error.code).to.equal('invalid_json');
    expect((await call()).json.error.code).to.equal('rate_limited');
  });
});
