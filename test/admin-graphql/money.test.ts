import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makeAccount } from '../helpers/database.ts';
import { lastAudit, makeChargedRequest, makeOpenRequest, withAdmin } from './admin-client.ts';

describe('admin: money', () => {
  const admin = withAdmin();
  const { database } = admin;

  it('puts AP into an account, and takes out no more than is available', async () => {
    const accountId = await makeAccount(database.pool);
    const grant = (kind: string, ap: number) =>
      admin.ask(
        `mutation { grantAp(input: {account: "${accountId}", ap: ${ap}, kind: ${kind}, reason: "a test"}) {
          ledgerEntry { kind amountAp balanceAfterAp reason actor account { balanceAp purchasedAp } } } }`,
      );
    const actor = `Ada operator (${admin.tokens.operator.id})`;
    expect((await grant('purchase', 700)).data).to.deep.equal({
      grantAp: {
        ledgerEntry: {
          kind: 'purchase',
          amountAp: 700,
          balanceAfterAp: 700,
          reason: 'a test',
          actor,
          account: { balanceAp: 700, purchasedAp: 700 },
        },
      },
    });
    expect((await lastAudit(database.pool))?.actor).to.equal(actor);
    const { errors } = await grant('adjustment', -701);
    expect(errors[0]).to.deep.include({
      message: 'the adjustment is larger than the available balance',
      path: ['grantAp'],
    });
    expect(errors[0]?.extensions.code).to.equal('refused');
    expect((await grant('grant', -1)).errors[0]?.extensions.code).to.equal('invalid_parameter');
  });

  it('cancels an open request and returns what it held, once', async () => {
    const { accountId, requestId } = await makeOpenRequest(database.pool);
    const cancel = `mutation { cancelRequest(input: {request: "${requestId}"}) {
      request { state costAp account { id balanceAp heldAp availableAp } } } }`;
    expect(await admin.must(`{ account(id: "${accountId}") { heldAp availableAp } }`)).to.deep.equal({
      account: { heldAp: 100, availableAp: 900 },
    });
    expect(await admin.must(cancel)).to.deep.equal({
      cancelRequest: {
        request: {
          state: 'cancelled',
          costAp: 0,
          account: { id: accountId, balanceAp: 1000, heldAp: 0, availableAp: 1000 },
        },
      },
    });
    const { errors } = await admin.ask(cancel);
    expect(errors[0]?.extensions.code).to.equal('invalid_state');
    expect(errors[0]?.message).to.equal('the request has already ended: cancelled');
  });

  it('refunds a charged request, never more than it cost', async () => {
    const { requestId } = await makeChargedRequest(database.pool, 60);
    const refund = (ap: number) =>
      admin.ask(
        `mutation { refundRequest(input: {request: "${requestId}", ap: ${ap}, reason: "bad answer"}) {
          ledgerEntry { amountAp balanceAfterAp request { costAp refundedAp ledgerEntries { nodes { kind amountAp } } } } } }`,
      );
    expect((await refund(40)).data).to.deep.equal({
      refundRequest: {
        ledgerEntry: {
          amountAp: 40,
          balanceAfterAp: 980,
          request: {
            costAp: 60,
            refundedAp: 40,
            ledgerEntries: {
              nodes: [
                { kind: 'charge', amountAp: -60 },
                { kind: 'refund', amountAp: 40 },
              ],
            },
          },
        },
      },
    });
    const { errors } = await refund(21);
    expect(errors[0]?.extensions.code).to.equal('refused');
    expect(errors[0]?.message).to.equal('the request cost 60 AP, of which 40 are refunded');
  });

  it('runs several mutations of one request one after the other, each by itself', async () => {
    const { data, errors } = await admin.ask<Record<string, unknown>>(
      `mutation { a: createAccount(input: {name: "A"}) { account { name } }
                  b: createAccount(input: {name: ""}) { account { name } }
                  c: createAccount(input: {name: "C"}) { account { name } } }`,
    );
    expect(data).to.deep.equal({ a: { account: { name: 'A' } }, b: null, c: { account: { name: 'C' } } });
    expect(errors).to.have.length(1);
    expect(errors[0]).to.deep.include({ message: 'Refused: name is not empty.', path: ['b'] });
  });
});
