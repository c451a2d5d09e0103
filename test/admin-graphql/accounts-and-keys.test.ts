import { expect } from 'chai';
import { describe, it } from 'mocha';
import { hashSecret } from '../../core/keys.ts';
import { makeAccount, makeKey, makeModel, selectOne } from '../helpers/database.ts';
import { lastAudit, withAdmin } from './admin-client.ts';

const SCOPES = ['llm', 'tts', 'images', 'x', 'cert'];

describe('admin: accounts and keys', () => {
  const admin = withAdmin();
  const { database } = admin;

  it('opens an account', async () => {
    const { createAccount } = await admin.must<{ createAccount: { account: Record<string, unknown> } }>(
      `mutation { createAccount(input: {name: "Acme", kind: enterprise, subject: "sub-1", language: ja, cardOnFile: true}) {
        account { id name kind subject language cardOnFile approvedAt balanceAp availableAp } } }`,
    );
    const { id, ...account } = createAccount.account;
    expect(account).to.deep.equal({
      name: 'Acme',
      kind: 'enterprise',
      subject: 'sub-1',
      language: 'ja',
      cardOnFile: true,
      approvedAt: null,
      balanceAp: 0,
      availableAp: 0,
    });
    expect(await lastAudit(database.pool)).to.include({
      action: 'create_account',
      target_id: id,
      before: null,
    });
  });

  it('changes only what a patch names, and clears what it names null', async () => {
    const accountId = await makeAccount(database.pool, { name: 'Before', language: 'en', hasCard: true });
    const { modelId } = await makeModel(database.pool);
    const update = `mutation ($patch: AccountChanges!) { updateAccount(input: {account: "${accountId}", patch: $patch}) {
      account { name language cardOnFile allowedModels } } }`;
    expect(await admin.must(update, { patch: { name: 'After', allowedModels: [modelId] } })).to.deep.equal({
      updateAccount: {
        account: { name: 'After', language: 'en', cardOnFile: true, allowedModels: [modelId] },
      },
    });
    expect(
      await admin.must(update, { patch: { language: null, cardOnFile: false, allowedModels: null } }),
    ).to.deep.equal({
      updateAccount: { account: { name: 'After', language: null, cardOnFile: false, allowedModels: null } },
    });
    const audit = await lastAudit(database.pool);
    expect(audit?.before).to.include({ language: 'en', card_on_file: true });
    expect(audit?.after).to.include({ language: null, card_on_file: false });
  });

  it('changes what else there is of a key and an account whose models are not in the catalogue', async () => {
    const accountId = await makeAccount(database.pool);
    const { keyId } = await makeKey(database.pool, accountId);
    await database.pool.query(`update app.keys set allowed_models = '{gone}' where id = $1`, [keyId]);
    await database.pool.query(`update app.accounts set allowed_models = '{gone}' where id = $1`, [accountId]);
    expect(
      await admin.must(`mutation {
        updateKey(input: {key: "${keyId}", patch: {name: "k"}}) { key { name allowedModels } }
        updateAccount(input: {account: "${accountId}", patch: {name: "a"}}) { account { name allowedModels } } }`),
    ).to.deep.equal({
      updateKey: { key: { name: 'k', allowedModels: ['gone'] } },
      updateAccount: { account: { name: 'a', allowedModels: ['gone'] } },
    });
  });

  it('refuses a list of allowed models that names none of the catalogue', async () => {
    const accountId = await makeAccount(database.pool);
    const { errors } = await admin.ask(
      `mutation { updateAccount(input: {account: "${accountId}", patch: {allowedModels: ["gpt-typo"]}}) { account { id } } }`,
    );
    expect(errors[0]).to.deep.include({ message: 'no such model: gpt-typo', path: ['updateAccount'] });
    expect(errors[0]?.extensions.code).to.equal('not_found');
  });

  it('approves an enterprise account once, and no other', async () => {
    const approve = (id: string) =>
      admin.ask<{ approveAccount: { account: { approvedAt: string } } }>(
        `mutation { approveAccount(input: {account: "${id}"}) { account { approvedAt } } }`,
      );
    const enterprise = await makeAccount(database.pool, { kind: 'enterprise', name: 'Waiting Ltd' });
    const waiting = '{ accountsAwaitingApproval { nodes { name } } }';
    expect(JSON.stringify(await admin.must(waiting))).to.contain('Waiting Ltd');
    const first = await approve(enterprise);
    expect(first.data?.approveAccount.account.approvedAt).to.be.a('string');
    expect(JSON.stringify(await admin.must(waiting))).not.to.contain('Waiting Ltd');
    const audited = await lastAudit(database.pool);
    expect((await approve(enterprise)).data).to.deep.equal(first.data);
    expect((await lastAudit(database.pool))?.id).to.equal(audited?.id);

    const { errors } = await approve(await makeAccount(database.pool));
    expect(errors[0]?.extensions.code).to.equal('invalid_parameter');
  });

  it('issues a key whose secret is shown once and stored as a hash alone', async () => {
    const accountId = await makeAccount(database.pool);
    const { issueKey } = await admin.must<{ issueKey: { secret: string; key: Record<string, unknown> } }>(
      `mutation { issueKey(input: {account: "${accountId}", prefix: svc_test_, name: "CI", scopes: [llm, tts],
        capDailyAp: 500, ratePerMinute: 7, expiresAt: "2030-01-01T00:00:00Z"}) {
        secret key { id prefix hint name scopes capPerRequestAp capDailyAp ratePerMinute state account { id } } } }`,
    );
    const { secret, key } = issueKey;
    expect(key).to.deep.include({
      prefix: 'svc_test_',
      hint: secret.slice(-4),
      name: 'CI',
      scopes: ['llm', 'tts'],
      capPerRequestAp: null,
      capDailyAp: 500,
      ratePerMinute: 7,
      state: 'active',
      account: { id: accountId },
    });
    const stored = await selectOne<{ secret_hash: Buffer }>(
      database.pool,
      'select secret_hash from app.keys where id = $1',
      [key.id],
    );
    expect(stored.secret_hash.equals(hashSecret(secret))).to.equal(true);
    const audit = JSON.stringify(await lastAudit(database.pool));
    expect(audit).to.contain('issue_key');
    for (const trace of [secret, hashSecret(secret).toString('hex'), 'secret_hash'])
      expect(audit).not.to.contain(trace);
  });

  it('changes a key, and leaves a revoked one as it is', async () => {
    const accountId = await makeAccount(database.pool);
    const { keyId } = await makeKey(database.pool, accountId, { capDailyAp: 10, scopes: ['llm'] });
    const update = `mutation ($patch: KeyChanges!) { updateKey(input: {key: "${keyId}", patch: $patch}) {
      key { name scopes capPerRequestAp capDailyAp capMonthlyAp ratePerMinute } } }`;
    expect(
      await admin.must(update, {
        patch: { name: 'Renamed', scopes: SCOPES, capPerRequestAp: 5, capDailyAp: null, ratePerMinute: 9 },
      }),
    ).to.deep.equal({
      updateKey: {
        key: {
          name: 'Renamed',
          scopes: SCOPES,
          capPerRequestAp: 5,
          capDailyAp: null,
          capMonthlyAp: null,
          ratePerMinute: 9,
        },
      },
    });
    const refused = await admin.ask(update, { patch: { ratePerMinute: 0 } });
    expect(refused.errors[0]).to.deep.include({ message: 'Refused: rate is positive.' });

    const revoke = `mutation { revokeKey(input: {key: "${keyId}"}) { key { state revokedAt } } }`;
    const first = await admin.must<{ revokeKey: { key: { state: string } } }>(revoke);
    expect(first.revokeKey.key.state).to.equal('revoked');
    expect(await admin.must(revoke)).to.deep.equal(first);
    const { errors } = await admin.ask(update, { patch: { name: 'Too late' } });
    expect(errors[0]?.extensions.code).to.equal('invalid_state');
  });
});
