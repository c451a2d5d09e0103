-- A process says that it lives.
create or replace function app.beat(p_id uuid, p_kind text, p_pool_id text, p_details jsonb) returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into app.processes as p (id, kind, pool_id, details) values (p_id, p_kind, p_pool_id, p_details)
    on conflict (id) do update set beat_at = now(), pool_id = excluded.pool_id, details = excluded.details
$$;
