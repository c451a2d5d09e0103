/** What may be spent, by whom, and when: the balance under load, holds, caps, the grant, and who must have a card. */
import { expect } from 'chai';
import { afterEach, describe, it } from 'mocha';
import { credit, selectOne } from '../helpers/database.ts';
import {
  type Answer,
  AP_OUT_PER_1K,
  type CallerOptions,
  DEFAULT_COST_AP,
  eventually,
  MAX_TOKENS,
  makeGate,
  withTestService,
} from '../helpers/service.ts';

/** The hold's fixed part for the default body: what its bytes, messages and the request itself may be in tokens, at 1 AP each. */
const AP_PER_OUT_TOKEN = AP_OUT_PER_1K / 1000;

function countByStatus(answers: readonly Answer[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

describe('money over HTTP', () => {
  const service = withTestService();
  afterEach(() => service.upstream.reset());

  const holdOf = async (body: object = {}): Promise<number> => {
    const poor = await service.makeCaller({ balanceAp: 1 });
    // one output token makes the smallest hold, so what is required of it is known to the token
    const { json } = await service.chat(poor, { ...body, max_tokens: 1 });
    return json.required_ap - AP_PER_OUT_TOKEN;
  };

  describe('the balance', () => {
    it('of credit for forty serves no more than forty of three hundred at once; the rest are 402 and the books exact', async () => {
      const body = { max_tokens: 100 };
      const holdAp = (await holdOf(body)) + 2 + 100 * AP_PER_OUT_TOKEN; // "100" is two bytes longer than "1"
      const gate = makeGate();
      service.upstream.program('chat-test', { gate: gate.passed });
      const balanceAp = 40 * holdAp;
      const caller = await service.makeCaller({ balanceAp });
      const refused: Answer[] = [];
      const answering = Array.from({ length: 300 }, () => service.chat(caller, body));
      for (const answer of answering)
        void answer.then((settled) => settled.status === 402 && refused.push(settled));
      await eventually(() => expect(refused).to.have.lengthOf(260), 15_000);
      expect(await service.balanceOf(caller.accountId)).to.include({ balanceAp, heldAp: balanceAp });
      gate.open();
      const answers = await Promise.all(answering);
      expect(countByStatus(answers)).to.deep.equal({ 200: 40, 402: 260 });
      for (const { json } of refused) {
        expect(json).to.include({ available_ap: 0, held_ap: balanceAp });
        expect(json.required_ap).to.be.above(0);
      }
      expect(service.upstream.count()).to.equal(40);
      expect(await service.chargesOf(caller.accountId)).to.deep.equal(Array(40).fill(DEFAULT_COST_AP));
      expect(await service.balanceOf(caller.accountId)).to.include({
        balanceAp: balanceAp - 40 * DEFAULT_COST_AP,
        heldAp: 0,
      });
      await service.ledgerIsClean();
    }).timeout(30_000);

    it('spent by many accounts at once stays exact for each', async () => {
      const callers = await Promise.all(
        Array.from({ length: 10 }, () => service.makeCaller({ balanceAp: 10_000 })),
      );
      const answers = await Promise.all(
        callers.flatMap((caller) => Array.from({ length: 10 }, () => service.chat(caller))),
      );
      expect(countByStatus(answers)).to.deep.equal({ 200: 100 });
      for (const { accountId } of callers) {
        expect(await service.balanceOf(accountId)).to.include({
          balanceAp: 10_000 - 10 * DEFAULT_COST_AP,
          heldAp: 0,
        });
      }
    });

    it('that is empty and one that is held are told apart', async () => {
      const gate = makeGate();
      service.upstream.programNext({ gate: gate.passed });
      const caller = await service.makeCaller({ balanceAp: 500 });
      const running = service.chat(caller);
      await service.upstream.waitForCall();
      const { heldAp } = await service.balanceOf(caller.accountId);
      const held = await service.chat(caller);
      expect(held.json).to.include({ available_ap: 500 - heldAp, held_ap: heldAp });
      gate.open();
      await running;
      const credits = await service.get('/v1/credits', caller);
      expect(credits.json).to.deep.equal({
        balance_ap: 500 - DEFAULT_COST_AP,
        held_ap: 0,
        available_ap: 500 - DEFAULT_COST_AP,
        granted_ap: 0,
        purchased_ap: 500 - DEFAULT_COST_AP,
        approximate_usd: 0.05,
        approximate_jpy: 7,
      });
    });
  });

  describe('the hold', () => {
    it('is the most the request can cost, and what is not spent comes back', async () => {
      const fixedAp = (await holdOf()) + 2;
      const gate = makeGate();
      service.upstream.programNext({ gate: gate.passed });
      const caller = await service.makeCaller();
      const running = service.chat(caller, { max_tokens: 200 });
      await service.upstream.waitForCall();
      expect((await service.balanceOf(caller.accountId)).heldAp).to.equal(fixedAp + 200 * AP_PER_OUT_TOKEN);
      gate.open();
      await running;
      expect(await service.balanceOf(caller.accountId)).to.include({
        heldAp: 0,
        balanceAp: 1_000_000 - DEFAULT_COST_AP,
      });
    });

    it('is lowered to what the balance pays, and the provider is told the lowered cap', async () => {
      const fixedAp = (await holdOf()) + 3; // "4096" is three bytes longer than "1"
      const balanceAp = fixedAp + 50 * AP_PER_OUT_TOKEN + 1;
      const caller = await service.makeCaller({ balanceAp });
      const gate = makeGate();
      service.upstream.programNext({ gate: gate.passed });
      const running = service.chat(caller, { max_tokens: MAX_TOKENS });
      const call = await service.upstream.waitForCall();
      expect(call.body.max_tokens).to.equal(50);
      expect((await service.balanceOf(caller.accountId)).heldAp).to.equal(balanceAp - 1);
      gate.open();
      expect((await running).status).to.equal(200);
    });

    it('is refused below the minimum useful output, unless less was asked for', async () => {
      const fixedAp = await holdOf();
      const forFifteen = fixedAp + 2 + 15 * AP_PER_OUT_TOKEN;
      const refused = await service.chat(await service.makeCaller({ balanceAp: forFifteen }), {
        max_tokens: 100,
      });
      expect([refused.status, refused.json.required_ap]).to.deep.equal([
        402,
        fixedAp + 2 + 16 * AP_PER_OUT_TOKEN,
      ]);
      const modest = await service.chat(await service.makeCaller({ balanceAp: forFifteen }), {
        max_tokens: 7,
      });
      expect(modest.status).to.equal(200);
      expect(service.upstream.calls[0]?.body.max_tokens).to.equal(7);
    });

    it('pays for each of `n` choices', async () => {
      const fixedAp = (await holdOf({ n: 4 })) - 3 * AP_PER_OUT_TOKEN;
      const gate = makeGate();
      service.upstream.programNext({ gate: gate.passed });
      const caller = await service.makeCaller();
      const running = service.chat(caller, { max_tokens: 9, n: 4 });
      await service.upstream.waitForCall();
      expect((await service.balanceOf(caller.accountId)).heldAp).to.equal(fixedAp + 4 * 9 * AP_PER_OUT_TOKEN);
      gate.open();
      await running;
    });

    it('is the most that is taken, whatever the provider says was used', async () => {
      const caller = await service.makeCaller();
      const gate = makeGate();
      // a few tokens past the cap are believed, but not paid
      service.upstream.programNext({
        gate: gate.passed,
        usage: { prompt_tokens: 1000, completion_tokens: 18, total_tokens: 1018 },
      });
      const running = service.chat(caller, { max_tokens: 10 });
      await service.upstream.waitForCall();
      const { heldAp } = await service.balanceOf(caller.accountId);
      gate.open();
      const answer = await running;
      expect(answer.status).to.equal(200);
      expect(answer.headers.get('x-svc-ap-cost')).to.equal(String(heldAp));
      expect(await service.chargesOf(caller.accountId)).to.deep.equal([heldAp]);
    });
  });

  describe('a key’s caps', () => {
    const keyOf = async (secret: string) => (await service.get('/v1/key', { secret })).json;

    it('per request refuse what would hold more, and let pass what holds just as much', async () => {
      const holdAp = (await holdOf()) + 2 + 100 * AP_PER_OUT_TOKEN;
      const tight = await service.chat(await service.makeCaller({ capPerRequestAp: holdAp - 1 }));
      expect([tight.status, tight.json.cap_ap, tight.json.requested_ap]).to.deep.equal([
        403,
        holdAp - 1,
        holdAp,
      ]);
      expect((await service.chat(await service.makeCaller({ capPerRequestAp: holdAp }))).status).to.equal(
        200,
      );
    });

    for (const [cap, view] of [
      ['capDailyAp', 'daily'],
      ['capMonthlyAp', 'monthly'],
    ] as const) {
      it(`of the ${view} kind count what was charged, and holds while they are open`, async () => {
        const holdAp = (await holdOf()) + 2 + 100 * AP_PER_OUT_TOKEN;
        const capAp = holdAp + 2 * DEFAULT_COST_AP;
        const caller = await service.makeCaller({ [cap]: capAp });
        const gate = makeGate();
        service.upstream.programNext({ gate: gate.passed });
        const running = service.chat(caller);
        await service.upstream.waitForCall();
        expect((await service.chat(caller)).status, 'while the first is held').to.equal(403);
        gate.open();
        await running;
        expect((await service.chat(caller)).status).to.equal(200);
        expect((await service.chat(caller)).status).to.equal(200);
        const over = await service.chat(caller);
        expect([over.status, over.json.cap_ap, over.json.requested_ap]).to.deep.equal([403, capAp, holdAp]);
        expect(Date.parse(over.json.resets_at)).to.be.within(Date.now(), Date.now() + 32 * 86_400_000);
        expect((await keyOf(caller.secret)).caps[view]).to.deep.equal({
          cap_ap: capAp,
          used_ap: 3 * DEFAULT_COST_AP,
          remaining_ap: capAp - 3 * DEFAULT_COST_AP,
        });
        expect(await service.chargesOf(caller.accountId)).to.have.lengthOf(3);
      });
    }

    it('are not used up by what failed', async () => {
      const caller = await service.makeCaller({ capDailyAp: 1000 });
      service.upstream.programNext({ status: 400 });
      await service.chat(caller);
      expect((await keyOf(caller.secret)).caps.daily.used_ap).to.equal(0);
    });

    it('are kept by many requests at once', async () => {
      const holdAp = (await holdOf()) + 2 + 100 * AP_PER_OUT_TOKEN;
      const gate = makeGate();
      service.upstream.program('chat-test', { gate: gate.passed });
      const caller = await service.makeCaller({ capDailyAp: 5 * holdAp });
      const answering = Array.from({ length: 40 }, () => service.chat(caller));
      const refused: Answer[] = [];
      for (const answer of answering)
        void answer.then((settled) => settled.status === 403 && refused.push(settled));
      await eventually(() => expect(refused).to.have.lengthOf(35));
      gate.open();
      expect(countByStatus(await Promise.all(answering))).to.deep.equal({ 200: 5, 403: 35 });
    });
  });

  describe('purchased and granted AP', () => {
    it('are told apart, and purchased ones are spent first', async () => {
      const caller = await service.makeCaller({ balanceAp: 500, fundedBy: 'grant' });
      await credit(service.pool, caller.accountId, DEFAULT_COST_AP + 5, 'purchase');
      const creditsOf = async () => (await service.get('/v1/credits', caller)).json;
      expect(await creditsOf()).to.include({ granted_ap: 500, purchased_ap: DEFAULT_COST_AP + 5 });
      await service.chat(caller);
      expect(await creditsOf()).to.include({ granted_ap: 500, purchased_ap: 5 });
      await service.chat(caller);
      expect(await creditsOf()).to.include({ granted_ap: 505 - DEFAULT_COST_AP, purchased_ap: 0 });
    });
  });
});

describe('the initial grant', () => {
  const GRANT_AP = 100_000;
  const MINIMUM_AGE_HOURS = 24;
  const service = withTestService({
    config: { initialGrantAp: GRANT_AP, minimumAccountAgeHours: MINIMUM_AGE_HOURS },
  });
  afterEach(() => service.upstream.reset());
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);

  it('is given once, at the first billable call, whatever the concurrency', async () => {
    const caller = await service.makeCaller({ balanceAp: 0 });
    expect((await service.get('/v1/credits', caller)).json.error.code).to.equal('no_credits_record');
    const answers = await Promise.all(Array.from({ length: 50 }, () => service.chat(caller)));
    expect(countByStatus(answers)).to.deep.equal({ 200: 50 });
    const { grants } = await selectOne<{ grants: number }>(
      service.pool,
      `select count(*) as grants from app.ledger_entries where account_id = $1 and kind = 'initial_grant'`,
      [caller.accountId],
    );
    expect(grants).to.equal(1);
    expect(await service.balanceOf(caller.accountId)).to.deep.equal({
      balanceAp: GRANT_AP - 50 * DEFAULT_COST_AP,
      heldAp: 0,
      purchasedAp: 0,
    });
  });

  it('is not given for a request that is refused', async () => {
    const caller = await service.makeCaller({ balanceAp: 0, capPerRequestAp: 1 });
    expect((await service.chat(caller)).status).to.equal(403);
    expect((await service.get('/v1/credits', caller)).status).to.equal(404);
  });

  it('is not for accounts younger than the minimum age, until they buy or come of age', async () => {
    const young = await service.makeCaller({ balanceAp: 0, createdAt: hoursAgo(MINIMUM_AGE_HOURS - 1) });
    const refused = await service.chat(young);
    expect([refused.status, refused.json.error.code]).to.deep.equal([403, 'account_too_new']);

    const ofAge = await service.makeCaller({ balanceAp: 0, createdAt: hoursAgo(MINIMUM_AGE_HOURS + 1) });
    expect((await service.chat(ofAge)).status).to.equal(200);

    await credit(service.pool, young.accountId, 1000, 'purchase');
    await eventually(async () => expect((await service.chat(young)).status).to.equal(200));
    expect(await service.balanceOf(young.accountId)).to.deep.equal({
      balanceAp: 1000 - DEFAULT_COST_AP,
      heldAp: 0,
      purchasedAp: 1000 - DEFAULT_COST_AP,
    });
  });

  it('comes on top of what was bought, once the account is of age', async () => {
    const caller = await service.makeCaller({ balanceAp: 1000 });
    await service.chat(caller);
    expect(await service.balanceOf(caller.accountId)).to.deep.equal({
      balanceAp: GRANT_AP + 1000 - DEFAULT_COST_AP,
      heldAp: 0,
      purchasedAp: 1000 - DEFAULT_COST_AP,
    });
  });
});

describe('who may spend', () => {
  const GRANT_CAP_AP = 1000;
  const service = withTestService({
    config: { cardRequiredFrom: new Date(Date.now() - 1000), grantDailyCapAp: GRANT_CAP_AP },
  });
  const codeOf = async (caller: CallerOptions) =>
    (await service.chat(await service.makeCaller(caller))).json.error?.code;

  it('from the date on: a live key’s account with a card, or with purchased AP; other keys freely', async () => {
    expect(await codeOf({ fundedBy: 'grant' })).to.equal('card_required');
    expect(await codeOf({ fundedBy: 'grant', hasCard: true })).to.equal(undefined);
    expect(await codeOf({ fundedBy: 'purchase' })).to.equal(undefined);
    expect(await codeOf({ fundedBy: 'grant', prefix: 'svc_test_' })).to.equal(undefined);
    expect(await codeOf({ fundedBy: 'grant', prefix: 'svc_beta_' })).to.equal(undefined);
  });

  it('as soon as a card is on file', async () => {
    const caller = await service.makeCaller({ fundedBy: 'grant' });
    expect((await service.chat(caller)).json.error.code).to.equal('card_required');
    await service.pool.query('update app.accounts set card_on_file = true where id = $1', [caller.accountId]);
    await eventually(async () => expect((await service.chat(caller)).status).to.equal(200));
  });

  it('no longer, once the purchased AP are spent and only granted ones are left', async () => {
    const caller = await service.makeCaller({ fundedBy: 'grant', balanceAp: 900 });
    await credit(service.pool, caller.accountId, DEFAULT_COST_AP, 'purchase');
    expect((await service.chat(caller)).status).to.equal(200);
    await eventually(async () =>
      expect((await service.chat(caller)).json.error?.code).to.equal('card_required'),
    );
  });

  it('an enterprise once an operator has approved it', async () => {
    const caller = await service.makeCaller({ kind: 'enterprise' });
    expect((await service.chat(caller)).json.error.code).to.equal('enterprise_manual_approval');
    await service.pool.query('update app.accounts set approved_at = now() where id = $1', [caller.accountId]);
    await eventually(async () => expect((await service.chat(caller)).status).to.equal(200));
  });

  it('granted AP up to the day’s cap, purchased ones beyond it', async () => {
    const caller = await service.makeCaller({ fundedBy: 'grant', hasCard: true });
    const gate = makeGate();
    service.upstream.reset();
    service.upstream.programNext({ gate: gate.passed });
    const body = { max_tokens: 300 };
    const first = service.chat(caller, body);
    await service.upstream.waitForCall();
    const { heldAp } = await service.balanceOf(caller.accountId);
    gate.open();
    await first;
    // so many more fit below the cap, each with its whole hold while it runs
    const more = Math.floor((GRANT_CAP_AP - heldAp) / DEFAULT_COST_AP);
    for (let call = 0; call < more; call += 1)
      expect((await service.chat(caller, body)).status).to.equal(200);
    const over = await service.chat(caller, body);
    expect([over.status, over.json.error.code, over.json.cap_ap]).to.deep.equal([
      429,
      'user_daily_cap',
      GRANT_CAP_AP,
    ]);
    expect(Number(over.headers.get('retry-after'))).to.be.within(1, 86_400);
    await credit(service.pool, caller.accountId, 1000, 'purchase');
    expect((await service.chat(caller, body)).status).to.equal(200);
  });
});
