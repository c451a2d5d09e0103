-- The files of requests that were ended a moment ago, in the same transaction (app.settle_requests): from its commit on they are
-- shown, and where a settlement says so they are the answer to the same question. Fails, and the settlement with it, when a file
-- was not begun for its request: nobody pays for what is not there.
--
-- p_ended: JSON array of app.settlement.
create or replace function app.store_results(p_ended json) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_named bigint;
  v_stored bigint;
begin
  with ended as materialized (
    select i.request_id, i.state, i.assets, i.cache_key
      from json_populate_recordset(null::app.settlement, p_ended) i
      where i.state in ('succeeded', 'cancelled') -- a cancelled stream is charged for what was finished
  ), files as materialized (
    select e.request_id, f.id, f.bytes, f.sha256, f.details, now() + make_interval(days => f.retention_days) as expires_at
      from ended e cross join lateral json_populate_recordset(null::app.asset_file, e.assets) f
  ), stored as (
    update app.assets a
      set state = 'stored',
          bytes = f.bytes,
          sha256 = decode(f.sha256, 'hex'),
          details = a.details || coalesce(f.details, '{}'),
          expires_at = f.expires_at,
          sweep_at = f.expires_at
      from files f
      where a.id = f.id and a.request_id = f.request_id and a.state = 'writing'
      returning a.request_id, a.account_id, a.expires_at
  ), cached as (
    insert into app.result_cache (account_id, cache_key, request_id, expires_at)
    -- twins in one batch: the later one answers
    select distinct on (s.account_id, e.cache_key)
           s.account_id, decode(e.cache_key, 'hex'), e.request_id, coalesce(min(s.expires_at), 'infinity')
      from ended e
      join stored s on s.request_id = e.request_id
      where e.cache_key is not null and e.state = 'succeeded'
      group by s.account_id, e.cache_key, e.request_id
      order by s.account_id, e.cache_key, e.request_id desc
    on conflict (account_id, cache_key) do update
      set request_id = excluded.request_id, expires_at = excluded.expires_at
  )
  select (select count(*) from files), (select count(*) from stored) into v_named, v_stored;

  if v_stored <> v_named then
    raise exception '% of % files that a settlement names were not begun for its request', v_named - v_stored, v_named
      using errcode = 'foreign_key_violation';
  end if;
end
$$;
