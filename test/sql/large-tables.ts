/**
 * Fills a database as years of use would: requests of several months with their ledger, results of the last days, open
 * holds, a queue. Fast, and hence beside the ledger's functions: indexes are built afterwards, triggers are off. The books
 * balance all the same.
 */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { selectOne, selectRows } from '../helpers/database.ts';

const MONTHS = Number(process.env.SVC_PLANS_MONTHS ?? 12);
const ACCOUNTS = 5000;
/** Of this account are a tenth of all requests: a caller whose list is long. */
const BUSY_SHARE = 10;
const OPEN_HOLDS = 2000;
const RESULTS = 20_000;
/** Of the requests, as many have a file. */
const ASSET_SHARE = 4;
const WAITING_JOBS = 20_000;

export interface LargeTables {
  readonly busyAccountId: string;
  /** A finished request of that account, with its result. */
  readonly recentId: string;
  /** A request of that account of some months ago. */
  readonly oldId: string;
  readonly openIds: readonly string[];
  readonly secretHash: Buffer;
  /** A file of that account, its request, and the key under which that is cached (hexadecimal). */
  readonly asset: { readonly id: string; readonly requestId: string; readonly cacheKey: string };
  /** A public character, a tenth of the gallery's. */
  readonly characterId: string;
  /** Of a license. */
  readonly licenseToken: string;
}

export async function fill(client: pg.Client, rows: number): Promise<LargeTables> {
  const [busyAccountId, secretHash] = [randomUUID(), Buffer.alloc(32, 7)];
  await client.query(`set session_replication_role = replica; set maintenance_work_mem = '512MB'`);
  for (let month = MONTHS - 1; month > 0; month -= 1) {
    await client.query('select app.maintain_partitions(now() - make_interval(months => $1))', [month]);
  }
  await client.query('select app.maintain_partitions()');
  await client.query(
    `insert into app.accounts (id, name) select case n when 0 then $1 else gen_random_uuid() end, 'account ' || n
       from generate_series(0, $2::integer) n`,
    [busyAccountId, ACCOUNTS],
  );
  await client.query(
    `insert into app.keys (account_id, secret_hash, prefix, hint, scopes)
       select id, case when id = $1 then $2::bytea else sha256(id::text::bytea) end, 'svc_live_', 'hint', '{llm}' from app.accounts`,
    [busyAccountId, secretHash],
  );

  const indexes = await dropIndexes(client);
  await client.query(
    `create temporary table account_numbers as
       select row_number() over (order by id <> $1) - 1 as n, id from app.accounts
         where id not in (select account_id from app.balances)`,
    [busyAccountId],
  );
  await client.query('create index on account_numbers (n)');
  // ids in the order of time, so that the primary key grows at its end
  await client.query(
    `insert into app.requests (id, account_id, key_id, area, task, model_id, price_id, state, hold_ap, cost_ap, usage, provider,
                               created_at, started_at, finished_at, deadline_at)
       select uuidv7(-age), a.id, a.id, 'llm', 'chat/completions', 'chat-large', 1, 'succeeded', 100, 1 + i.n % 100,
              '{"prompt_tokens": 100, "completion_tokens": 200}', 'openai', now() - age, now() - age, now() - age, now() - age
         from generate_series(1, $1::integer) i(n)
         cross join lateral (select make_interval(days => 25 * $2) * (1 - i.n::float / $1) as age) t
         join account_numbers a on a.n = case when i.n % ${BUSY_SHARE} = 0 then 0 else 1 + i.n % ${ACCOUNTS} end`,
    [rows, MONTHS],
  );
  await client.query(
    `insert into app.ledger_entries (account_id, kind, amount_ap, balance_after_ap, request_id)
       select account_id, 'charge', -cost_ap, 1000, id from app.requests where provider = 'openai'`,
  );
  await client.query(
    `insert into app.request_results (request_id, kind, body)
       select id, 'json', repeat('x', 200) from (select id from app.requests where provider = 'openai' order by id desc limit $1) q`,
    [RESULTS],
  );
  await client.query(
    `insert into app.assets (id, account_id, request_id, kind, content_type, bytes, sha256, state, expires_at, sweep_at, created_at)
       select uuidv7(created_at - now()), account_id, id, 'image', 'image/png', 1000, sha256(id::text::bytea), 'stored',
              now() + interval '30 days', now() + interval '30 days', created_at
         from (select * from app.requests where provider = 'openai' order by id desc limit $1) q`,
    [rows / ASSET_SHARE],
  );
  await client.query(
    `insert into app.result_cache (account_id, cache_key, request_id, expires_at)
       select account_id, sha256, request_id, expires_at from app.assets where state = 'stored'
       on conflict do nothing`,
  );
  await fillGallery(client);
  await client.query(
    `insert into app.idempotency_keys (account_id, key, body_hash, request_id)
       select account_id, 'key ' || id, 'x', id from (select id, account_id from app.requests where provider = 'openai' order by id desc limit $1) q`,
    [RESULTS],
  );
  for (const definition of indexes) await client.query(definition);

  await client.query(
    `with open as (
       insert into app.requests (id, account_id, key_id, area, task, model_id, price_id, hold_ap, deadline_at)
       select uuidv7(), id, id, 'llm', 'chat/completions', 'chat-large', 1, 100, now() + interval '10 minutes'
         from account_numbers where n between 1 and $1
       returning id, account_id
     )
     insert into app.holds select id, account_id, 100, now() + interval '10 minutes' from open`,
    [OPEN_HOLDS],
  );
  await client.query(
    `insert into app.request_inputs select request_id, '"' || repeat('x', 1000) || '"' from app.holds`,
  );
  await client.query(
    `insert into app.ledger_entries (account_id, kind, amount_ap, balance_after_ap, reason)
       select a.id, 'purchase', 1000000 - coalesce(sum(l.amount_ap), 0), 1000000, 'opening'
         from account_numbers a left join app.ledger_entries l on l.account_id = a.id group by a.id`,
  );
  await client.query(
    `insert into app.balances (account_id, balance_ap, held_ap)
       select a.id, 1000000, coalesce((select sum(h.amount_ap) from app.holds h where h.account_id = a.id), 0)
         from account_numbers a`,
  );
  await client.query(
    `insert into app.cap_usage (subject_id, scope, period_start, used_ap)
       select a.id, 'key:day', current_date - d, 10 from app.accounts a, generate_series(1, 10) d`,
  );
  await client.query(
    `select graphile_worker.add_jobs(array_agg(
       row('large/waiting', '{}'::json, null, now() - make_interval(secs => n), 10, null, null, null)::graphile_worker.job_spec
     )) from generate_series(1, $1::integer) n`,
    [WAITING_JOBS],
  );
  await client.query('set session_replication_role = origin; drop table account_numbers');
  return await pickRequests(client, busyAccountId, secretHash);
}

/** Every file published; every tenth of a character that stands in the midst of the others. The triggers that count are off. */
async function fillGallery(client: pg.Client): Promise<void> {
  await client.query(
    `insert into app.characters (id, account_id, slug, name_ja, name_en, prompt, is_public)
       select uuidv7(), id, 'character-' || row_number() over (), 'x', 'x', 'x', true from app.accounts limit 2000`,
  );
  await client.query(
    `with picked as (select id from app.characters where slug = 'character-1000')
     insert into app.gallery_items (asset_id, image_id, account_id, request_id, model_id, character_id, charge_request_id, published_at)
     select a.id, a.request_id, a.account_id, a.request_id, 'm', case when row_number() over (order by a.id) % 10 = 0 then picked.id end, a.request_id, a.created_at
       from app.assets a, picked where a.kind = 'image'`,
  );
  await client.query(
    `insert into app.gallery_totals
       select c.id, (select count(*) from app.gallery_items g where g.character_id = c.id) from app.characters c
       union all select '00000000-0000-0000-0000-000000000000', count(*) from app.gallery_items`,
  );
  await client.query(
    `insert into app.licenses (asset_id, token, image_id, model_id, terms)
       select asset_id, 'lic_' || left(encode(sha256(asset_id::text::bytea), 'hex'), 32), image_id, 'm', 't' from app.gallery_items`,
  );
  await client.query(
    `insert into app.certs (cert_id, entry_id, source, status, asset_id, image_id, issuer_account_id, issuer_key_id)
       select uuidv7(), asset_id::text, 'create', 'pending', asset_id, image_id, g.account_id, k.id
         from app.gallery_items g join app.keys k on k.account_id = g.account_id`,
  );
}

async function pickRequests(
  client: pg.Client,
  busyAccountId: string,
  secretHash: Buffer,
): Promise<LargeTables> {
  const { recent, old } = await selectOne<{ recent: string; old: string }>(
    client,
    `select (select id from app.requests where account_id = $1 order by id desc limit 1) as recent,
            (select id from app.requests where account_id = $1 and id < app.uuid_floor(now() - interval '150 days')
               order by id desc limit 1) as old`,
    [busyAccountId],
  );
  const asset = await selectOne<LargeTables['asset'] & pg.QueryResultRow>(
    client,
    `select id, request_id as "requestId", encode(sha256, 'hex') as "cacheKey"
       from app.assets a
       where account_id = $1 and kind = 'image'
         and exists (select from app.gallery_items g where g.asset_id = a.id and g.character_id is not null)
       order by id desc offset 10 limit 1`,
    [busyAccountId],
  );
  const gallery = await selectOne<{ characterId: string; licenseToken: string }>(
    client,
    `select (select id from app.characters where slug = 'character-1000') as "characterId",
            (select token from app.licenses limit 1) as "licenseToken"`,
  );
  const open = await selectRows<{ id: string }>(client, 'select request_id as id from app.holds limit 200');
  return {
    busyAccountId,
    secretHash,
    recentId: recent,
    oldId: old,
    openIds: open.map((row) => row.id),
    asset,
    ...gallery,
  };
}

/** The secondary indexes of the two largest tables; the answer makes them again. */
async function dropIndexes(client: pg.Client): Promise<string[]> {
  const rows = await selectRows<{ name: string; definition: string }>(
    client,
    `select x.indexrelid::regclass::text as name, replace(pg_get_indexdef(x.indexrelid), ' ON ONLY ', ' ON ') as definition
       from pg_index x
       where x.indrelid in ('app.requests'::regclass, 'app.ledger_entries'::regclass) and not x.indisprimary`,
  );
  for (const { name } of rows) await client.query(`drop index ${name}`);
  return rows.map((row) => row.definition);
}
