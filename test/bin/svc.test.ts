/** The command line as people and scripts meet it: child processes, what they print, and what then stands in the database. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { hashSecret } from '../../core/keys.ts';
import { makeModel, selectOne, selectRows, withDatabase } from '../helpers/database.ts';
import { type Finished, printedObject, run } from './command.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const NOBODY = '00000000-0000-4000-8000-000000000000';

describe('svc', () => {
  const database = withDatabase();
  const svc = (...args: string[]): Promise<Finished> => run('svc', args, { DATABASE_URL: database.url });
  const svcJson = async (...args: string[]): Promise<Record<string, unknown>> => {
    const finished = await svc(...args, '--json');
    expect(finished.stderr).to.equal('');
    expect(finished.status).to.equal(0);
    return printedObject(finished);
  };
  const newAccount = async (): Promise<string> =>
    (await svcJson('account', 'create', '--name', 'Test')).account_id as string;
  const auditOf = (targetId: string) =>
    selectRows(
      database.pool,
      'select actor, action, before, after from app.audit_log where target_id = $1 order by id',
      [targetId],
    );

  describe('account create', () => {
    it('opens an account with everything it is given', async () => {
      const printed = await svcJson(
        ...['account', 'create', '--name', '山田 Ltd', '--kind', 'enterprise', '--subject', 'user-1'],
        ...['--language', 'ja', '--card'],
      );
      expect(printed).to.have.all.keys('account_id');
      const row = await selectOne(
        database.pool,
        'select name, kind, subject, language, card_on_file, approved_at from app.accounts where id = $1',
        [printed.account_id],
      );
      expect(row).to.deep.equal({
        name: '山田 Ltd',
        kind: 'enterprise',
        subject: 'user-1',
        language: 'ja',
        card_on_file: true,
        approved_at: null,
      });
      expect(await auditOf(printed.account_id as string)).to.have.lengthOf(1);
    });

    it('opens a personal account without a card when only a name is given, and says so to a person', async () => {
      const { status, stdout, stderr } = await svc('account', 'create', '--name', 'Ann');
      expect([status, stderr]).to.deep.equal([0, '']);
      const accountId = /^Created account (\S+)\n$/.exec(stdout)?.[1];
      expect(accountId).to.match(UUID);
      expect(
        await selectOne(database.pool, 'select kind, subject, card_on_file from app.accounts where id = $1', [
          accountId,
        ]),
      ).to.deep.equal({ kind: 'personal', subject: null, card_on_file: false });
    });

    it('refuses a subject that has an account', async () => {
      await svcJson('account', 'create', '--name', 'A', '--subject', 'taken');
      expect(await svc('account', 'create', '--name', 'B', '--subject', 'taken', '--json')).to.deep.equal({
        status: 1,
        stdout: '',
        stderr: 'svc: subject taken already has an account\n',
      });
    });
  });

  describe('key issue', () => {
    it('issues a live key with every scope and stores only its hash', async () => {
      const accountId = await newAccount();
      const printed = await svcJson('key', 'issue', '--account', accountId);
      expect(printed).to.have.all.keys('key_id', 'secret');
      const secret = printed.secret as string;
      expect(secret).to.match(/^svc_live_[A-Za-z0-9_-]{43}$/);
      const row = await selectOne<Record<string, unknown>>(
        database.pool,
        'select * from app.keys where id = $1',
        [printed.key_id],
      );
      expect(row).to.deep.include({
        account_id: accountId,
        secret_hash: hashSecret(secret),
        prefix: 'svc_live_',
        hint: secret.slice(-4),
        name: '',
        scopes: ['llm', 'tts', 'images', 'x', 'cert'],
        allowed_models: null,
        cap_per_request_ap: null,
        cap_daily_ap: null,
        cap_monthly_ap: null,
        rate_per_minute: 60,
        expires_at: null,
        revoked_at: null,
      });
      const audit = await auditOf(printed.key_id as string);
      expect(audit).to.have.lengthOf(1);
      expect(JSON.stringify(audit))
        .not.to.include(secret)
        .and.not.to.include(hashSecret(secret).toString('hex'));
    });

    it('takes every option', async () => {
      const accountId = await newAccount();
      for (const id of ['a', 'b/c']) await makeModel(database.pool, { id });
      const { key_id, secret } = await svcJson(
        ...['key', 'issue', '--account', accountId.toUpperCase(), '--name', 'ci', '--prefix', 'svc_test_'],
        ...['--scopes', 'llm, tts,llm', '--cap-per-request-ap', '10', '--cap-daily-ap', '0'],
        ...['--cap-monthly-ap', '9000000000', '--models', 'a,b/c', '--rate-per-minute', '6000'],
        ...['--expires-at', '2030-02-28T09:00:00+09:00'],
      );
      expect(secret).to.match(/^svc_test_/);
      expect(
        await selectOne(
          database.pool,
          `select name, prefix, scopes, allowed_models, cap_per_request_ap, cap_daily_ap, cap_monthly_ap,
             rate_per_minute, expires_at from app.keys where id = $1`,
          [key_id],
        ),
      ).to.deep.equal({
        name: 'ci',
        prefix: 'svc_test_',
        scopes: ['llm', 'tts'],
        allowed_models: ['a', 'b/c'],
        cap_per_request_ap: 10,
        cap_daily_ap: 0,
        cap_monthly_ap: 9_000_000_000,
        rate_per_minute: 6000,
        expires_at: new Date('2030-02-28T00:00:00Z'),
      });
    });

    it('refuses models that are not in the catalogue, and shows no secret', async () => {
      const accountId = await newAccount();
      expect(await svc('key', 'issue', '--account', accountId, '--models', 'nosuch')).to.deep.equal({
        status: 1,
        stdout: '',
        stderr: 'svc: no such model: nosuch\n',
      });
    });

    it('says which account is unknown', async () => {
      expect(await svc('key', 'issue', '--account', NOBODY, '--json')).to.deep.equal({
        status: 1,
        stdout: '',
        stderr: `svc: no account has the id ${NOBODY}\n`,
      });
    });
  });

  describe('key revoke', () => {
    it('revokes a key once and keeps the first date', async () => {
      const issued = await svcJson('key', 'issue', '--account', await newAccount());
      const keyId = issued.key_id as string;
      const printed = await svcJson('key', 'revoke', '--key', keyId);
      expect(printed).to.have.all.keys('key_id', 'revoked_at');
      expect(printed.key_id).to.equal(keyId);
      const { revoked_at } = await selectOne<{ revoked_at: Date }>(
        database.pool,
        'select revoked_at from app.keys where id = $1',
        [keyId],
      );
      expect(printed.revoked_at).to.equal(revoked_at.toISOString());
      expect(await svcJson('key', 'revoke', '--key', keyId)).to.deep.equal(printed);
      expect(await auditOf(keyId)).to.have.lengthOf(2); // issued, revoked
    });

    it('says which key is unknown', async () => {
      expect(await svc('key', 'revoke', '--key', NOBODY)).to.deep.equal({
        status: 1,
        stdout: '',
        stderr: `svc: no key has the id ${NOBODY}\n`,
      });
    });
  });

  describe('grant', () => {
    it('books purchases, grants and negative adjustments, each with an audit entry', async () => {
      const accountId = await newAccount();
      const grant = (ap: number, kind: string): Promise<Record<string, unknown>> =>
        svcJson('grant', '--account', accountId, '--ap', String(ap), '--kind', kind, '--reason', `a ${kind}`);
      const printed = [
        await grant(1000, 'purchase'),
        await grant(500, 'grant'),
        await grant(-1200, 'adjustment'),
      ];
      expect(printed.map((entry) => entry.balance_ap)).to.deep.equal([1000, 1500, 300]);
      const entries = await selectRows(
        database.pool,
        `select id, kind, amount_ap, balance_after_ap, reason, actor from app.ledger_entries
           where account_id = $1 order by id`,
        [accountId],
      );
      expect(entries).to.deep.equal(
        [
          { kind: 'purchase', amount_ap: 1000, balance_after_ap: 1000, reason: 'a purchase' },
          { kind: 'grant', amount_ap: 500, balance_after_ap: 1500, reason: 'a grant' },
          { kind: 'adjustment', amount_ap: -1200, balance_after_ap: 300, reason: 'a adjustment' },
        ].map((entry, index) => ({ id: printed[index]?.entry_id, ...entry, actor: 'cli' })),
      );
      const audit = await auditOf(accountId);
      expect(audit.slice(1)).to.deep.equal(
        entries.map(({ id, kind, amount_ap, balance_after_ap, reason }) => ({
          actor: 'cli',
          action: 'credit_account',
          before: { balance_ap: balance_after_ap - amount_ap },
          after: { balance_ap: balance_after_ap, entry_id: id, ap: amount_ap, kind, reason },
        })),
      );
    });

    const refusals: readonly (readonly [string, string, string, string])[] = [
      ['more than is available', '-1', 'adjustment', 'the adjustment is larger than the available balance'],
      ['a negative purchase', '-1', 'purchase', 'a purchase must be a positive number of AP'],
      ['nothing', '0', 'grant', 'the number of AP must not be 0'],
    ];
    for (const [title, ap, kind, message] of refusals) {
      it(`refuses ${title}`, async () => {
        const accountId = await newAccount();
        const args = ['grant', '--account', accountId, '--ap', ap, '--kind', kind, '--reason', 'r', '--json'];
        expect(await svc(...args)).to.deep.equal({ status: 1, stdout: '', stderr: `svc: ${message}\n` });
        expect(await auditOf(accountId)).to.have.lengthOf(1);
      });
    }

    it('says which account is unknown', async () => {
      const args = ['grant', '--account', NOBODY, '--ap', '5', '--kind', 'grant', '--reason', 'r'];
      expect((await svc(...args)).stderr).to.equal(`svc: no account has the id ${NOBODY}\n`);
    });
  });

  describe('admin-token issue', () => {
    it('issues a token and stores only its hash', async () => {
      const printed = await svcJson('admin-token', 'issue', '--name', 'Kim', '--role', 'reader');
      expect(printed).to.have.all.keys('token_id', 'secret');
      const secret = printed.secret as string;
      expect(secret).to.match(/^svc_op_[A-Za-z0-9_-]{43}$/);
      expect(
        await selectOne(
          database.pool,
          'select name, role, secret_hash, revoked_at from app.operator_tokens where id = $1',
          [printed.token_id],
        ),
      ).to.deep.equal({ name: 'Kim', role: 'reader', secret_hash: hashSecret(secret), revoked_at: null });
      const audit = await auditOf(printed.token_id as string);
      expect(audit.map(({ actor, action }) => [actor, action])).to.deep.equal([
        ['cli', 'issue_operator_token'],
      ]);
      expect(JSON.stringify(audit)).not.to.include('secret');
    });
  });

  describe('ledger check', () => {
    it('prints sums and no problems while the books are in order', async () => {
      const accountId = await newAccount();
      await svcJson('grant', '--account', accountId, '--ap', '7', '--kind', 'grant', '--reason', 'r');
      const printed = await svcJson('ledger', 'check');
      expect(printed).to.have.all.keys(
        ...['accounts', 'entries', 'open_holds', 'stale_holds', 'drift_ap', 'problems'],
      );
      expect(printed).to.deep.include({ open_holds: 0, stale_holds: 0, drift_ap: 0, problems: [] });
      expect(printed.accounts).to.be.a('number').above(0);
      expect(printed.entries).to.be.a('number').above(0);
    });

    it('names each problem and exits with 1 when a balance is not what the ledger says', async () => {
      const accountId = await newAccount();
      await svcJson('grant', '--account', accountId, '--ap', '7', '--kind', 'grant', '--reason', 'r');
      await database.pool.query('update app.balances set balance_ap = 9 where account_id = $1', [accountId]);
      try {
        const finished = await svc('ledger', 'check', '--json');
        expect([finished.status, finished.stderr]).to.deep.equal([1, '']);
        expect(printedObject(finished)).to.deep.include({
          drift_ap: 2,
          problems: [
            { problem: 'balance_differs_from_ledger', account_id: accountId, balance_ap: 9, ledger_ap: 7 },
          ],
        });
        const { status, stdout } = await svc('ledger', 'check');
        expect(status).to.equal(1);
        expect(stdout).to.include('1 problems').and.to.include(accountId);
      } finally {
        await database.pool.query('update app.balances set balance_ap = 7 where account_id = $1', [
          accountId,
        ]);
      }
    });
  });
});
