/** Pictures that take long, beside everybody else: chat does not wait for them, nor do other accounts' pictures. */

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { makeImageModel } from '../helpers/image-models.ts';
import { eventually, makeGate, type TestCaller, withTestService } from '../helpers/service.ts';

const MODEL = 'image-mocked';
const BODY = { model: MODEL, prompt: 'a lighthouse', size: '64x64', quality: 'low', cache: false };
const LATER = { prefer: 'respond-async' };
const SOON_MS = 2500;

describe('heavy requests', () => {
  const service = withTestService({
    config: { workerConcurrency: 6, imageConcurrency: 2 },
  });
  let greedy: TestCaller;
  let other: TestCaller;
  let gate: ReturnType<typeof makeGate>;

  before('a model of the mock', async () => {
    await makeImageModel(service, { id: MODEL, provider: 'mock' });
    greedy = await service.makeCaller({});
    other = await service.makeCaller({});
  });
  after(() => gate.open());

  const generate = (caller: TestCaller, headers = {}) =>
    service.post('/v1/images/generations', { secret: caller.secret, body: BODY, headers });
  const calls = () => service.upstream.calls.length;
  const soon = <Result>(what: Promise<Result>): Promise<Result> =>
    Promise.race([
      what,
      sleep(SOON_MS, undefined, { ref: false }).then(() => {
        throw new Error('it waited for the pictures');
      }),
    ]);

  it('of one account take neither the slots of chat nor every place', async () => {
    gate = makeGate();
    service.upstream.programNext({ gate: gate.passed });
    for (let index = 0; index < 8; index += 1) expect((await generate(greedy, LATER)).status).to.equal(202);
    await eventually(() => expect(calls()).to.equal(1));
    expect((await soon(service.chat(other))).status).to.equal(200);
    expect((await soon(generate(other))).status).to.equal(200);
    gate.open();
    await eventually(async () => expect(await service.chargesOf(greedy.accountId)).to.have.length(8), 15_000);
  });
});
