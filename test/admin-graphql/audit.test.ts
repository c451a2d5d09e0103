import { expect } from 'chai';
import { describe, it } from 'mocha';
import { v7 } from 'uuid';
import { makeAccount, makeKey, makeModel, selectRows } from '../helpers/database.ts';
import {
  type AuditRow,
  lastAudit,
  makeChargedRequest,
  makeFailedJob,
  makeOpenRequest,
  makeToken,
  withAdmin,
} from './admin-client.ts';

describe('admin: audit log', () => {
  const admin = withAdmin();
  const { database } = admin;

  let inputs: Record<string, string>;

  before(async () => {
    const { pool } = database;
    const accountId = await makeAccount(pool);
    const enterpriseId = await makeAccount(pool, { kind: 'enterprise' });
    const { keyId } = await makeKey(pool, accountId);
    const { modelId } = await makeModel(pool);
    const token = await makeToken(pool, 'reader');
    const assetId = v7();
    await pool.query(
      `insert into app.assets (id, account_id, kind, content_type, bytes, sha256, state, sweep_at)
         values ($1, $2, 'character', 'image/png', 1, sha256('x'), 'stored', null)`,
      [assetId, accountId],
    );
    const characterId = v7();
    await pool.query(
      `insert into app.characters (id, account_id, slug, name_ja, name_en, prompt) values ($1, $2, 'fox', 'x', 'x', 'x')`,
      [characterId, accountId],
    );
    inputs = {
      announce: 'titleEn: "t", titleJa: "t", bodyEn: "b", bodyJa: "b"',
      approveAccount: `account: "${enterpriseId}"`,
      cancelRequest: `request: "${(await makeOpenRequest(database.pool)).requestId}"`,
      checkLedger: '',
      createAccount: 'name: "n"',
      forgetJob: `job: ${await makeFailedJob(pool)}`,
      grantAp: `account: "${accountId}", ap: 1, kind: grant, reason: "r"`,
      importCatalogue: 'yaml: "providers: [{name: new, kind: sandbox}]"',
      importLegacyCerts: 'certificates: [{number: 1}]',
      issueKey: `account: "${accountId}"`,
      publishPrice: `model: "${modelId}", unit: per_1k_tokens, apInPer1k: 1, apOutPer1k: 1`,
      refundRequest: `request: "${(await makeChargedRequest(database.pool, 5)).requestId}", ap: 1, reason: "r"`,
      removeCharacter: `character: "${characterId}", reason: "r"`,
      retireModel: `model: "${(await makeModel(pool)).modelId}"`,
      retryJob: `job: ${await makeFailedJob(pool)}`,
      revokeKey: `key: "${(await makeKey(pool, accountId)).keyId}"`,
      revokeOperatorToken: `token: "${token.id}"`,
      takeDownAsset: `asset: "${assetId}", reason: "r"`,
      updateAccount: `account: "${accountId}", patch: {name: "m"}`,
      updateKey: `key: "${keyId}", patch: {name: "m"}`,
    };
  });

  it('has a line for every mutation there is, with who did it and what changed', async () => {
    const { __schema: schema } = await admin.must<{
      __schema: { mutationType: { fields: { name: string }[] } };
    }>('{ __schema { mutationType { fields { name } } } }');
    const names = schema.mutationType.fields.map(({ name }) => name);
    expect(names.sort()).to.deep.equal(Object.keys(inputs).sort());

    for (const name of names) {
      const last = (await lastAudit(database.pool))?.id ?? 0;
      await admin.must(`mutation { ${name}(input: {${inputs[name]}}) { __typename } }`);
      const rows = await selectRows<AuditRow>(database.pool, 'select * from app.audit_log where id > $1', [
        last,
      ]);
      expect(rows, name).to.have.length(1);
      expect(rows[0]?.actor, name).to.equal(`Ada operator (${admin.tokens.operator.id})`);
      expect(rows[0]?.before ?? rows[0]?.after, name).to.be.an('object');
    }
  });

  it('keeps no line of an update that changes nothing', async () => {
    const accountId = await makeAccount(database.pool, { name: 'Same' });
    const { keyId } = await makeKey(database.pool, accountId, { expiresAt: new Date('2099-01-01') });
    const last = (await lastAudit(database.pool))?.id;
    for (const patch of ['{}', '{name: "Same", allowedModels: null}']) {
      await admin.must(
        `mutation { updateAccount(input: {account: "${accountId}", patch: ${patch}}) { account { id } } }`,
      );
    }
    for (const patch of ['{}', '{name: "Test key", expiresAt: "2099-01-01T00:00:00Z"}']) {
      await admin.must(`mutation { updateKey(input: {key: "${keyId}", patch: ${patch}}) { key { id } } }`);
    }
    expect((await lastAudit(database.pool))?.id).to.equal(last);
  });

  it('keeps no line of what was refused', async () => {
    const last = (await lastAudit(database.pool))?.id;
    await admin.ask('mutation { createAccount(input: {name: ""}) { __typename } }');
    await admin.ask(
      'mutation { createAccount(input: {name: "n"}) { __typename } }',
      {},
      admin.tokens.reader.secret,
    );
    expect((await lastAudit(database.pool))?.id).to.equal(last);
  });

  it('is read newest first, by target and by actor', async () => {
    const { createAccount } = await admin.must<{ createAccount: { account: { id: string } } }>(
      'mutation { createAccount(input: {name: "Watched"}) { account { id } } }',
    );
    const { id } = createAccount.account;
    await admin.must(
      `mutation { updateAccount(input: {account: "${id}", patch: {name: "Renamed"}}) { __typename } }`,
    );
    const read = `query ($condition: AuditEntryCondition) {
      auditEntries(condition: $condition) { nodes { action targetId before after } } }`;
    const { auditEntries } = await admin.must<{
      auditEntries: {
        nodes: { action: string; before: { name: string } | null; after: { name: string } }[];
      };
    }>(read, { condition: { targetType: 'account', targetId: id } });
    expect(auditEntries.nodes.map(({ action }) => action)).to.deep.equal([
      'update_account',
      'create_account',
    ]);
    expect(auditEntries.nodes[0]?.before?.name).to.equal('Watched');
    expect(auditEntries.nodes[0]?.after.name).to.equal('Renamed');
    expect(await admin.must(read, { condition: { actor: 'nobody' } })).to.deep.equal({
      auditEntries: { nodes: [] },
    });
  });
});
