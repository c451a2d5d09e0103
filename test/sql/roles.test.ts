/**
 * What the roles of the processes may do: read what they need, and move money through the ledger's functions alone.
 */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makePool, withTransaction } from '../../core/database.ts';
import {
  makeAccount,
  makeSubmission,
  selectOne,
  selectRows,
  settle,
  submit,
  withDatabase,
  withRollback,
} from '../helpers/database.ts';

const ROLES = ['app_ingress', 'app_worker'] as const;
const INSUFFICIENT_PRIVILEGE = '42501';

/** What would be theft, forgery or repudiation if a process could do it. */
const FORBIDDEN = [
  'update app.balances set balance_ap = 1000000',
  'update app.balances set held_ap = 0',
  'insert into app.balances (account_id, balance_ap) values (gen_random_uuid(), 1)',
  'delete from app.balances',
  'truncate app.balances',
  'update app.holds set amount_ap = 0',
  'insert into app.holds values (gen_random_uuid(), gen_random_uuid(), 1, now())',
  'delete from app.holds',
  'update app.ledger_entries set amount_ap = 1',
  `insert into app.ledger_entries (account_id, kind, amount_ap, balance_after_ap) values (gen_random_uuid(), 'grant', 1, 1)`,
  'delete from app.ledger_entries',
  'truncate app.ledger_entries',
  `update app.requests set cost_ap = 0`,
  'delete from app.requests',
  'delete from app.idempotency_keys',
  'update app.cap_usage set used_ap = 0',
  `update app.keys set cap_daily_ap = null`,
  `update app.accounts set approved_at = now()`,
  `update app.prices set ap = 0`,
  `insert into app.prices (model_id, unit, ap) values ('m', 'per_call', 0)`,
  'delete from app.audit_log',
  'select * from app.audit_log',
  'select * from app.operator_tokens',
  `select app.credit_account(gen_random_uuid(), 1, 'grant', 'x', 'x')`,
  `select app.refund_request(gen_random_uuid(), 1, 'x', 'x')`,
  `select app.publish_price('m', 'per_call', null, null, 1, null, null, null, 'x')`,
  `select app.issue_key(gen_random_uuid(), ''::bytea, '', '', '', null, null, null, null, null, null, null, 'x')`,
  `select app.create_account('x', null, null, null, null, 'x')`,
  `select app.revoke_key(gen_random_uuid(), 'x')`,
  `select app.audit('x', 'x', 'x', 'x', null, null)`,
  `select app.give_back_caps('{}')`,
  `select app.begin_caps(gen_random_uuid(), gen_random_uuid(), '{}')`,
  `update app.assets set expires_at = null`,
  'insert into app.assets select * from app.assets',
  'delete from app.assets',
  'insert into app.result_cache select * from app.result_cache',
  `select app.store_results('[]')`,
  `update app.characters set royalty_bps = 10000`,
  'insert into app.gallery_items select * from app.gallery_items',
  'update app.gallery_items set withdrawn_at = null',
  'update app.licenses set terms = null',
  `update app.certs set status = 'issued'`,
  'delete from app.legacy_certs',
  `select app.charge_request('{}', '{}', 0)`,
  `select app.keep_asset(gen_random_uuid())`,
  `select app.release_asset(gen_random_uuid())`,
  'select * from app.page_views',
  `create table app.mine ()`,
  `alter table app.ledger_entries disable trigger all`,
  'set session_replication_role = replica',
];

describe('the roles of the processes', () => {
  const database = withDatabase();

  for (const role of ROLES) {
    it(`${role} may not write to any table of ours`, async () => {
      const rows = await selectRows(
        database.pool,
        `select c.relname, p.privilege from pg_class c, unnest(array['insert', 'update', 'delete', 'truncate']) p(privilege)
           where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p')
             and has_table_privilege($1, c.oid, p.privilege)`,
        [role],
      );
      expect(rows).to.deep.equal([]);
    });

    for (const statement of FORBIDDEN) {
      it(`${role} may not: ${statement}`, async () => {
        const code = await withRollback(database.pool, async (client) => {
          await client.query(`set local role ${role}`);
          return await client.query(statement).then(
            () => 'done',
            (error: { code?: string }) => error.code,
          );
        });
        expect(code).to.equal(INSUFFICIENT_PRIVILEGE);
      });
    }
  }

  it('app_ingress may submit and cancel, and not settle', async () => {
    await withRollback(database.pool, async (client) => {
      const accountId = await makeAccount(client, { grantedAp: 1000 });
      const submission = makeSubmission(accountId, { idempotency_key: 'k', body_sha256: '11'.repeat(32) });
      await client.query('set local role app_ingress');
      expect((await submit(client, [submission]))[0]?.outcome).to.equal('accepted');
      const { state } = await selectOne(client, 'select state from app.cancel_request($1, $2)', [
        submission.id,
        accountId,
      ]);
      expect(state).to.equal('cancelled');
      const code = await settle(client, []).then(
        () => 'done',
        (error: { code?: string }) => error.code,
      );
      expect(code).to.equal(INSUFFICIENT_PRIVILEGE);
    });
  });

  it('app_worker may run, settle and expire, and not submit', async () => {
    await withRollback(database.pool, async (client) => {
      const accountId = await makeAccount(client, { grantedAp: 1000 });
      const submission = makeSubmission(accountId, { cap_daily_ap: 1000 });
      await submit(client, [submission]);
      await client.query('set local role app_worker');
      await client.query('select app.mark_running($1)', [[submission.id]]);
      const rows = await settle(client, [
        { request_id: submission.id, state: 'succeeded', cost_ap: 1, result: '{}', result_kind: 'json' },
      ]);
      expect(rows[0]?.is_settled).to.equal(true);
      await client.query('select * from app.expire_holds()');
      await client.query('select app.maintain_partitions()');
      await client.query('select app.purge_expired()');
      const code = await submit(client, []).then(
        () => 'done',
        (error: { code?: string }) => error.code,
      );
      expect(code).to.equal(INSUFFICIENT_PRIVILEGE);
    });
  });

  it('app_ingress keeps and deletes files, app_worker keeps and sweeps them', async () => {
    const files = [
      'begin_assets',
      'abandon_assets',
      'purge_assets',
      'store_assets',
      'delete_assets',
      'due_assets',
    ];
    const mayCall = async (role: string): Promise<string[]> => {
      const rows = await selectRows<{ name: string }>(
        database.pool,
        `select p.proname::text as name from pg_proc p
           where p.pronamespace = 'app'::regnamespace and p.proname = any ($2)
             and has_function_privilege($1, p.oid, 'execute')`,
        [role, files],
      );
      return rows.map((row) => row.name);
    };
    expect(await mayCall('app_ingress')).to.have.members(files.filter((name) => name !== 'due_assets'));
    expect(await mayCall('app_worker')).to.have.members(
      files.filter((name) => name !== 'store_assets' && name !== 'delete_assets'),
    );
  });

  it('app_worker neither publishes nor registers anything', async () => {
    const names = [
      'publish_image',
      'withdraw_images',
      'certify_image',
      'register_character',
      'remove_character',
      'count_page_views',
    ];
    for (const [role, may] of [
      ['app_ingress', names],
      ['app_worker', []],
    ] as const) {
      const rows = await selectRows<{ name: string }>(
        database.pool,
        `select p.proname::text as name from pg_proc p
           where p.pronamespace = 'app'::regnamespace and p.proname = any ($2)
             and has_function_privilege($1, p.oid, 'execute')`,
        [role, names],
      );
      expect(rows.map((row) => row.name)).to.have.members([...may]);
    }
  });

  it('nobody else may call a function of ours', async () => {
    const rows = await selectRows(
      database.pool,
      `select p.oid::regprocedure from pg_proc p cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
         where p.pronamespace = 'app'::regnamespace and a.grantee = 0 and p.prorettype <> 'trigger'::regtype`,
    );
    expect(rows).to.deep.equal([]);
  });

  it('every function that runs with its owner’s rights looks names up in no schema others can write to', async () => {
    const rows = await selectRows(
      database.pool,
      `select p.oid::regprocedure from pg_proc p
         where p.pronamespace in ('app'::regnamespace, 'admin'::regnamespace) and p.prosecdef
           and not exists (
             select from unnest(p.proconfig) c where c like 'search\\_path=pg\\_catalog%, pg\\_temp' and c not like '%public%'
           )`,
    );
    expect(rows).to.deep.equal([]);
  });

  it('a pool with a role carries it on every connection', async () => {
    const pool = await makePool({
      databaseUrl: database.url,
      role: 'app_worker',
      applicationName: 'svc-test',
      maxConnections: 1,
      onError: () => {},
    });
    try {
      const user = await withTransaction(pool, async (client) =>
        selectOne<{ current_user: string }>(client, 'select current_user::text'),
      );
      expect(user.current_user).to.equal('app_worker');
    } finally {
      await pool.end();
    }
  });
});
