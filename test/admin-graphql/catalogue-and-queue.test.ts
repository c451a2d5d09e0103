import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makeModel } from '../helpers/database.ts';
import { lastAudit, makeFailedJob, withAdmin } from './admin-client.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

describe('admin: catalogue and queue', () => {
  const admin = withAdmin();
  const { database } = admin;

  it('refuses a price increase under seven days of notice, and announces one that has them', async () => {
    const { modelId } = await makeModel(database.pool, { apInPer1k: 25, apOutPer1k: 100 });
    const publish = (daysAhead: number) =>
      admin.ask(
        `mutation ($at: Datetime) { publishPrice(input: {model: "${modelId}", unit: per_1k_tokens, apInPer1k: 30,
           apOutPer1k: 100, effectiveAt: $at}) {
           price { apInPer1k isInForce isComing announcements { nodes { kind titleEn } }
             model { prices { nodes { apInPer1k isInForce } } } } } }`,
        { at: new Date(Date.now() + daysAhead * DAY_MS).toISOString() },
      );
    const { data, errors } = await publish(6.9);
    expect(data).to.deep.equal({ publishPrice: null });
    expect(errors[0]?.extensions.code).to.equal('increase_needs_seven_days_notice');
    expect(errors[0]?.message).to.match(/^a price increase needs seven days' notice: effective_at must be /);

    expect((await publish(7.1)).data).to.deep.equal({
      publishPrice: {
        price: {
          apInPer1k: 30,
          isInForce: false,
          isComing: true,
          announcements: { nodes: [{ kind: 'price', titleEn: `Price change: ${modelId}` }] },
          model: {
            prices: {
              nodes: [
                { apInPer1k: 30, isInForce: false },
                { apInPer1k: 25, isInForce: true },
              ],
            },
          },
        },
      },
    });
  });

  it('imports a catalogue whole, or not at all with every problem; exports it again', async () => {
    const importFile = `mutation ($yaml: String!) { importCatalogue(input: {yaml: $yaml, fileName: "ours.yaml"}) {
      providers models voices retired priceChanges { model } } }`;
    const broken = await admin.ask(importFile, {
      yaml: 'providers: [{name: here, kind: nonsense}]\nmodels: [{id: m}]',
    });
    expect(broken.errors[0]?.extensions.code).to.equal('invalid_parameter');
    expect(broken.errors[0]?.extensions.problems).to.be.an('array').with.length.above(1);
    expect(broken.errors[0]?.message).to.contain('ours.yaml:1:');

    const yaml = `
providers:
  - {name: elsewhere, kind: openai, base_url: "https://example.test/v1", credential_env: ELSEWHERE_KEY}
models:
  - {id: imported, type: chat, max_tokens: 100, context_tokens: 1000,
     routes: [{provider: elsewhere, upstream_model: up}], pricing: {ap_in_per_1k: 1, ap_out_per_1k: 2}}`;
    expect(await admin.must(importFile, { yaml })).to.deep.equal({
      importCatalogue: { providers: 1, models: 1, voices: 0, retired: [], priceChanges: [] },
    });
    expect(await lastAudit(database.pool)).to.include({
      action: 'import_catalogue',
      actor: `Ada operator (${admin.tokens.operator.id})`,
    });
    const { reader } = admin.tokens;
    const { data } = await admin.ask<{ exportCatalogue: { yaml: string } }>(
      '{ exportCatalogue { yaml models } }',
      {},
      reader.secret,
    );
    expect(data?.exportCatalogue.yaml).to.contain('imported').and.to.contain('ELSEWHERE_KEY');
  });

  it('lists failed jobs without their payloads, lets one run again and forgets another', async () => {
    const [retried, forgotten] = [
      await makeFailedJob(database.pool, 'a'),
      await makeFailedJob(database.pool, 'b'),
    ];
    const queue =
      '{ queueTasks { nodes { task waiting failed } } failedJobs { nodes { id task lastError } } }';
    expect(await admin.must(queue)).to.deep.equal({
      queueTasks: {
        nodes: [
          { task: 'a', waiting: 0, failed: 1 },
          { task: 'b', waiting: 0, failed: 1 },
        ],
      },
      failedJobs: {
        nodes: [
          { id: forgotten, task: 'b', lastError: 'boom' },
          { id: retried, task: 'a', lastError: 'boom' },
        ],
      },
    });
    await admin.must(`mutation { retryJob(input: {job: ${retried}}) { failedJob { id } } }`);
    await admin.must(`mutation { forgetJob(input: {job: ${forgotten}}) { failedJob { id } } }`);
    expect(await admin.must(queue)).to.deep.equal({
      queueTasks: { nodes: [{ task: 'a', waiting: 1, failed: 0 }] },
      failedJobs: { nodes: [] },
    });
    const { errors } = await admin.ask(
      `mutation { retryJob(input: {job: ${retried}}) { failedJob { id } } }`,
    );
    expect(errors[0]?.extensions.code).to.equal('not_found');
  });
});
