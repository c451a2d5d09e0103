/**
 * Every CHECK and UNIQUE constraint of the schema says no by its name, and rows that never change do not.
 * A new constraint wants a line here: the last test tells which are missing.
 */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { makeAccount, type Queryable, selectRows, withDatabase, withRollback } from '../helpers/database.ts';

const A = `'00000000-0000-4000-8000-00000000000a'`; // an account with balance 10
const R = `'0198c000-0000-7000-8000-00000000000a'`; // a queued request of hold 5
const HASH = `sha256('a')`;

const account = (set: string) => `update app.accounts set ${set}`;
const balance = (set: string) => `update app.balances set ${set}`;
const key = (columns: string, values: string) =>
  `insert into app.keys (account_id, hint, ${columns}) values (${A}, 'hint', ${values})`;
const request = (set: string) => `update app.requests set ${set} where id = ${R}`;
const entry = (kind: string, ap: number, after: number, of = 'null') =>
  `insert into app.ledger_entries (account_id, kind, amount_ap, balance_after_ap, request_id)
     values (${A}, '${kind}', ${ap}, ${after}, ${of})`;
const asset = (columns: string, values: string) =>
  `insert into app.assets (id, account_id, request_id, kind, content_type, ${columns})
     values (${R}, ${A}, ${R}, 'image', 'image/png', ${values})`;
const storedAsset = (columns: string, values: string) =>
  asset(`state, bytes, sha256, ${columns}`, `'stored', 1, ${HASH}, ${values}`);
const price = (columns: string, values: string) =>
  `insert into app.prices (model_id, ${columns}) values ('chat', ${values})`;
const character = (columns: string, values: string) =>
  `insert into app.characters (id, account_id, slug, name_ja, name_en, prompt, ${columns})
     values (${R}, ${A}, 'fox', 'x', 'x', 'x', ${values})`;
const plainCharacter = (slug: string, name = `'x'`, prompt = `'x'`) =>
  `insert into app.characters (id, account_id, slug, name_ja, name_en, prompt)
     values (gen_random_uuid(), ${A}, ${slug}, ${name}, 'x', ${prompt})`;
const withAsset = (statement: string) => `${storedAsset('position', '0')}; ${statement}`;
const galleryItem = (columns: string, values: string) =>
  withAsset(`insert into app.gallery_items (asset_id, image_id, account_id, request_id, model_id, charge_request_id, published_at, ${columns})
     values (${R}, ${R}, ${A}, ${R}, 'm', ${R}, now(), ${values})`);
const license = (token: string, id = R) =>
  `insert into app.licenses (asset_id, token, image_id, model_id, terms) values (${id}, ${token}, ${R}, 'm', 't')`;
const TOKEN = `'lic_' || repeat('x', 32)`;
/** Issued by the prepared account with the prepared key. */
const cert = (columns: string, values: string) =>
  `insert into app.certs (cert_id, entry_id, issuer_account_id, issuer_key_id, ${columns})
     select gen_random_uuid(), 'entry', ${A}, k.id, ${values} from app.keys k`;
const finished = (state: string, cost: number | string, code = 'null') =>
  request(
    `state = '${state}', started_at = now(), finished_at = now(), cost_ap = ${cost}, error_code = ${code}`,
  );

/** Table and constraint; statements of which each violates it (the first that it meets is named). */
const VIOLATIONS: Readonly<Record<string, readonly string[]>> = {
  'accounts.name_is_not_empty': [account(`name = ''`), account(`name = repeat('x', 201)`)],
  'accounts.kind_is_known': [account(`kind = 'other'`)],
  'accounts.language_is_known': [account(`language = 'fr'`)],
  'accounts.subject_belongs_to_one_account': [
    `insert into app.accounts (name, subject) values ('one', 'sub'), ('two', 'sub')`,
  ],

  'balances.balance_not_negative': [balance('balance_ap = -1, held_ap = -1')],
  'balances.held_not_negative': [balance('held_ap = -1')],
  'balances.hold_not_above_balance': [balance('held_ap = 11')],
  'balances.balance_is_an_exact_integer': [balance('balance_ap = 9007199254740992')],
  'balances.purchased_within_balance': [balance('purchased_ap = 11'), balance('purchased_ap = -1')],
  'balances.balances_pkey': [`insert into app.balances (account_id) values (${A})`],

  'keys.secret_is_unique': [key('prefix, scopes, secret_hash', `'svc_live_', '{}', ${HASH}`)],
  'keys.secret_hash_is_sha256': [key('prefix, scopes, secret_hash', `'svc_live_', '{}', 'short'`)],
  'keys.prefix_is_known': [key('prefix, scopes, secret_hash', `'sk-', '{}', sha256('b')`)],
  'keys.scopes_are_known': [key('prefix, scopes, secret_hash', `'svc_live_', '{llm,all}', sha256('b')`)],
  'keys.caps_not_negative': ['cap_per_request_ap', 'cap_daily_ap', 'cap_monthly_ap'].map((cap) =>
    key(`prefix, scopes, secret_hash, ${cap}`, `'svc_live_', '{}', sha256('b'), -1`),
  ),
  'keys.rate_is_positive': [
    key('prefix, scopes, secret_hash, rate_per_minute', `'svc_live_', '{}', sha256('b'), 0`),
  ],

  'cap_usage.used_not_negative': [`insert into app.cap_usage values (${A}, 'key:day', now(), -1)`],

  'operator_tokens.role_is_known': [
    `insert into app.operator_tokens (name, role, secret_hash) values ('x', 'admin', sha256('b'))`,
  ],
  'operator_tokens.operator_secret_hash_is_sha256': [
    `insert into app.operator_tokens (name, role, secret_hash) values ('x', 'reader', 'short')`,
  ],
  'operator_tokens.operator_name_is_not_empty': [
    `insert into app.operator_tokens (name, role, secret_hash) values ('', 'reader', sha256('b'))`,
  ],
  'operator_tokens.operator_secret_is_unique': [
    `insert into app.operator_tokens (name, role, secret_hash) select 'x', 'reader', ${HASH} from generate_series(1, 2)`,
  ],

  'providers.provider_kind_is_known': [
    `insert into app.providers (name, kind, base_url) values ('x', 'other', 'https://x')`,
  ],
  'providers.base_url_is_http': [
    `insert into app.providers (name, kind, base_url) values ('x', 'openai', 'file:///etc/passwd')`,
  ],
  'providers.credential_env_is_a_name': [
    `insert into app.providers (name, kind, credential_env) values ('x', 'sandbox', 'sk-secret')`,
  ],
  'providers.outside_providers_have_an_address': [
    `insert into app.providers (name, kind) values ('x', 'openai')`,
  ],

  'models.model_type_is_known': [`insert into app.models (id, type) values ('x', 'other')`],
  'models.chat_models_have_limits': [`insert into app.models (id, type, max_tokens) values ('x', 'chat', 0)`],
  'routes.weight_is_positive': [
    `insert into app.routes (model_id, provider, upstream_model, weight) values ('chat', 'sandbox', 'x', 0)`,
  ],

  'prices.unit_is_known': [price('unit, ap', `'per_moon', 1`)],
  'prices.components_fit_unit': [
    price('unit, ap', `'per_1k_tokens', 1`),
    price('unit, ap_in_per_1k', `'per_1k_tokens', 1`),
    price('unit, ap_in_per_1k, ap_out_per_1k, ap', `'per_1k_tokens', 1, 1, 1`),
    price('unit, ap_in_per_1k', `'per_image', 1`),
    price('unit', `'per_second'`),
  ],
  'prices.prices_not_negative': [
    price('unit, ap_in_per_1k, ap_out_per_1k', `'per_1k_tokens', -1, 1`),
    price('unit, ap_in_per_1k, ap_out_per_1k', `'per_1k_tokens', 1, -1`),
    price('unit, ap', `'per_call', -1`),
  ],
  'prices.price_not_effective_before_announced': [
    price(
      'unit, ap_in_per_1k, ap_out_per_1k, announced_at, effective_at',
      `'per_1k_tokens', 1, 1, now(), now() - interval '1 s'`,
    ),
  ],
  'prices.one_price_a_moment': [
    `insert into app.prices (model_id, unit, ap_in_per_1k, ap_out_per_1k)
       select 'chat', 'per_1k_tokens', 1, 1 from generate_series(1, 2)`,
  ],
  'announcements.announcement_kind_is_known': [
    `insert into app.announcements (kind, title_en, title_ja, body_en, body_ja) values ('x', '', '', '', '')`,
  ],

  'requests.state_is_known': [request(`state = 'lost', finished_at = now(), cost_ap = 0`)],
  'requests.running_has_started': [
    request(`state = 'running'`),
    request(`state = 'succeeded', finished_at = now(), cost_ap = 0`),
  ],
  'requests.queued_has_not_started': [request('started_at = now()')],
  'requests.finished_when_final': [
    request('finished_at = now(), cost_ap = 0'),
    request(`state = 'cancelled'`),
  ],
  'requests.cost_when_final': [request('cost_ap = 0'), finished('succeeded', 'null')],
  'requests.hold_not_negative': [request('hold_ap = -1')],
  'requests.cost_within_hold': [finished('succeeded', 6), finished('succeeded', -1)],
  'requests.failure_costs_nothing': [finished('failed', 1, `'x'`), finished('expired', 1, `'x'`)],
  'requests.failure_has_a_code': [finished('failed', 0), finished('expired', 0)],
  'requests.requests_default_pkey': [`insert into app.requests select * from app.requests where id = ${R}`],

  'holds.hold_amount_not_negative': [`insert into app.holds values (gen_random_uuid(), ${A}, -1, now())`],
  'holds.holds_pkey': [
    `insert into app.holds select gen_random_uuid(), ${A}, 1, now(); insert into app.holds select * from app.holds`,
  ],

  'ledger_entries.entry_kind_is_known': [entry('gift', 1, 1)],
  'ledger_entries.amount_is_not_zero': [entry('adjustment', 0, 1)],
  'ledger_entries.charges_take_and_credits_give': [
    entry('charge', 1, 1, R),
    entry('purchase', -1, 1),
    entry('grant', -1, 1),
    entry('initial_grant', -1, 1),
    entry('refund', -1, 1, R),
  ],
  'ledger_entries.charges_and_refunds_name_a_request': [
    entry('charge', -1, 1),
    entry('refund', 1, 1),
    entry('grant', 1, 1, R),
  ],
  'ledger_entries.balance_after_not_negative': [entry('adjustment', -1, -1)],
  'ledger_entries.request_charged_once': [`${entry('charge', -1, 9, R)}; ${entry('charge', -1, 8, R)}`],
  'ledger_entries.initial_grant_once': [`${entry('initial_grant', 1, 1)}; ${entry('initial_grant', 1, 2)}`],

  'request_results.result_kind_is_known': [
    `insert into app.request_results values (gen_random_uuid(), 'html', '')`,
  ],
  'idempotency_keys.idempotency_key_is_short': [
    `insert into app.idempotency_keys values (${A}, '', 'x', ${R})`,
    `insert into app.idempotency_keys values (${A}, repeat('x', 256), 'x', ${R})`,
  ],
  'idempotency_keys.idempotency_keys_pkey': [
    `insert into app.idempotency_keys select ${A}, 'k', 'x', ${R} from generate_series(1, 2)`,
  ],
  'assets.asset_kind_is_known': [
    `insert into app.assets (id, account_id, request_id, kind, content_type) values (${R}, ${A}, ${R}, 'x', 'image/png')`,
  ],
  'assets.asset_names_its_request': [
    `insert into app.assets (id, account_id, kind, content_type) values (${R}, ${A}, 'image', 'image/png')`,
  ],
  'assets.asset_position_not_negative': [asset('position', '-1')],
  'assets.asset_content_type_is_one': ['png', 'image/png; x=y', 'image/png\r\nx: y', ''].map(
    (type) =>
      `insert into app.assets (id, account_id, request_id, kind, content_type) values (${R}, ${A}, ${R}, 'image', '${type}')`,
  ),
  'assets.asset_bytes_not_negative': [asset('bytes', '-1')],
  'assets.asset_sha256_is_sha256': [asset('sha256', `'short'`)],
  'assets.asset_state_is_known': [asset('state, bytes, sha256', `'lost', 1, ${HASH}`)],
  'assets.stored_asset_is_measured': [
    asset('state, bytes', `'stored', 1`),
    asset('state, sha256', `'stored', ${HASH}`),
  ],
  'assets.only_stored_assets_end': [
    asset('expires_at', 'now()'),
    asset('deleted_at', 'now()'),
    asset('purged_at, expires_at, sweep_at', 'now(), now(), null'),
  ],
  'assets.purged_asset_has_ended': [storedAsset('purged_at, sweep_at', 'now(), null')],
  'assets.asset_that_ends_is_swept': [
    asset('sweep_at', 'null'),
    storedAsset('expires_at, sweep_at', 'now(), null'),
    storedAsset('deleted_at, sweep_at', 'now(), null'),
    storedAsset('expires_at, purged_at', 'now(), now()'),
  ],
  'assets.asset_stored_once_a_position': [
    `${storedAsset('position', '0')}; insert into app.assets (id, account_id, request_id, kind, content_type, state, bytes, sha256)
       select gen_random_uuid(), account_id, request_id, kind, content_type, state, bytes, sha256 from app.assets`,
  ],
  'result_cache.cache_key_is_sha256': [`insert into app.result_cache values (${A}, 'short', ${R}, now())`],
  'assets.kept_asset_does_not_expire': [
    storedAsset('expires_at, kept_expires_at', `now() + interval '1 day', now()`),
  ],
  'assets.asset_selected_once_a_request': [
    `${storedAsset('is_selected', 'true')}; insert into app.assets (id, account_id, request_id, kind, content_type, position, is_selected)
       select gen_random_uuid(), account_id, request_id, kind, content_type, 1, true from app.assets`,
  ],
  'characters.character_slug_is_unique': [`${plainCharacter(`'fox'`)}; ${plainCharacter(`'fox'`)}`],
  'characters.character_slug_is_a_word': [
    `''`,
    `'Fox'`,
    `'-fox'`,
    `'fox-'`,
    `'a b'`,
    `repeat('x', 65)`,
    R,
  ].map((slug) => plainCharacter(slug)),
  'characters.character_names_are_short': [`''`, `repeat('x', 201)`].map((name) =>
    plainCharacter(`'fox'`, name),
  ),
  'characters.character_prompt_is_short': [`''`, `repeat('x', 4001)`].map((prompt) =>
    plainCharacter(`'fox'`, `'x'`, prompt),
  ),
  'characters.character_has_one_payee': [character('payee_account_id, payee_subject', `${A}, 'x'`)],
  'characters.royalty_is_a_share': [
    character('payee_subject, royalty_bps', `'x', -1`),
    character('payee_subject, royalty_bps', `'x', 10001`),
  ],
  'characters.royalty_has_a_payee': [character('royalty_bps', '1')],
  'gallery_items.not_withdrawn_before_published': [galleryItem('withdrawn_at', `now() - interval '1 s'`)],
  'gallery_totals.gallery_total_not_negative': [`insert into app.gallery_totals values (${A}, -1)`],
  'licenses.license_token_is_unique': [
    `${withAsset(license(TOKEN))};
     insert into app.assets (id, account_id, request_id, kind, content_type) values (${A}, ${A}, ${R}, 'image', 'image/png');
     ${license(TOKEN, A)}`,
  ],
  'licenses.license_token_is_long': [`'lic_short'`, `'lic_' || repeat('!', 32)`].map((token) =>
    withAsset(license(token)),
  ),
  'certs.entry_certified_once': [
    `${cert('source, status', `'award', 'pending'`)}; ${cert('source, status', `'award', 'pending'`)}`,
  ],
  'certs.cert_source_is_known': [cert('source, status', `'gift', 'pending'`)],
  'certs.cert_status_is_known': [cert('source, status', `'award', 'lost'`)],
  'certs.cert_record_sha256_is_sha256': [
    cert('source, status, record_sha256', `'award', 'pending', 'short'`),
  ],
  'certs.cert_names_its_image': [
    cert('source, status, image_id', `'award', 'pending', ${R}::uuid`),
    withAsset(cert('source, status, asset_id', `'award', 'pending', ${R}::uuid`)),
  ],
  'certs.issued_cert_has_a_record': [
    cert('source, status, issued_on', `'create', 'issued', current_date`),
    cert('source, status, record_sha256', `'create', 'approved', ${HASH}`),
  ],
  'legacy_certs.legacy_number_is_positive': [
    `insert into app.legacy_certs (number, status) values (0, 'issued')`,
  ],
  'legacy_certs.legacy_status_is_known': [
    `insert into app.legacy_certs (number, status) values (1, 'pending')`,
  ],
  'page_views.page_is_short': [
    `insert into app.page_views values (current_date, '', 1)`,
    `insert into app.page_views values (current_date, repeat('x', 129), 1)`,
  ],
  'page_views.views_are_positive': [`insert into app.page_views values (current_date, '/', 0)`],
  'processes.process_kind_is_known': [
    `insert into app.processes (id, kind) values (gen_random_uuid(), 'cron')`,
  ],
};

/** Primary keys and the like whose violation is nothing of ours to promise. */
const PLAIN_KEYS = /_pkey$/;

describe('the schema', () => {
  const database = withDatabase();

  async function prepare(db: Queryable): Promise<void> {
    await db.query(
      `insert into app.accounts (id, name) values (${A}, 'Test');
       insert into app.balances (account_id, balance_ap) values (${A}, 10);
       insert into app.providers (name, kind) values ('sandbox', 'sandbox');
       insert into app.models (id, type, max_tokens, context_tokens) values ('chat', 'chat', 1, 1);
       insert into app.requests (id, account_id, key_id, area, task, model_id, price_id, hold_ap, deadline_at)
         values (${R}, ${A}, ${A}, 'llm', 'chat/completions', 'chat', 1, 5, now());
       ${key('prefix, scopes, secret_hash', `'svc_live_', '{}', ${HASH}`)};
       alter table app.prices disable trigger user; -- the constraints stand without the guard too`,
    );
  }

  for (const [name, statements] of Object.entries(VIOLATIONS)) {
    it(`says ${name.replace('.', ': ')}`, async () => {
      for (const statement of statements) {
        const violated = await withRollback(database.pool, async (db) => {
          await prepare(db);
          return await db.query(statement).then(
            () => 'nothing',
            (error: { table?: string; constraint?: string; message: string }) =>
              error.constraint === undefined
                ? error.message
                : `${error.table?.replace('_default', '')}.${error.constraint}`,
          );
        });
        expect(violated, statement).to.equal(name);
      }
    });
  }

  it('has no constraint that is not tested above', async () => {
    const rows = await selectRows<{ name: string }>(
      database.pool,
      `select c.conrelid::regclass::text as name_of_table, replace(c.conrelid::regclass::text, 'app.', '') || '.' || c.conname as name
         from pg_constraint c join pg_class t on t.oid = c.conrelid
         where t.relnamespace = 'app'::regnamespace and not t.relispartition and c.contype in ('c', 'u')
       union all
       select null, t.relname || '.' || i.relname
         from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
         where t.relnamespace = 'app'::regnamespace and not t.relispartition and x.indisunique
           and not exists (select from pg_constraint c where c.conindid = x.indexrelid)`,
    );
    const untested = rows
      .map((row) => row.name)
      .filter((name) => !PLAIN_KEYS.test(name) && VIOLATIONS[name] === undefined);
    expect(untested).to.deep.equal([]);
  });

  const FIXED: readonly (readonly [table: string, update: string])[] = [
    ['ledger_entries', 'amount_ap = amount_ap'],
    ['audit_log', `actor = 'somebody else'`],
    ['prices', 'ap_in_per_1k = 0'],
  ];
  for (const [table, update] of FIXED) {
    for (const statement of [
      `update app.${table} set ${update}`,
      `delete from app.${table}`,
      `truncate app.${table} cascade`,
    ]) {
      it(`does not: ${statement}`, async () => {
        await withRollback(database.pool, async (db) => {
          await makeAccount(db, { grantedAp: 1 });
          await db.query(
            `insert into app.models (id, type, max_tokens, context_tokens) values ('chat', 'chat', 1, 1);
             select app.publish_price('chat', 'per_1k_tokens', 1, 1, null, null, null, null, 'test')`,
          );
          const error = await db.query(statement).then(
            () => undefined,
            (thrown: Error & { code?: string }) => thrown,
          );
          expect(error?.message).to.equal(`${table} rows never change`);
          expect(error?.code).to.equal('23001');
        });
      });
    }
  }
});
