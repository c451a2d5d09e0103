-- Takes processes that fell silent off the list and unlocks the jobs of the workers among them, so that they run again
-- at once instead of after the queue engine's four hours. One caller at a time does it. Returns how many were dead.
create or replace function app.reap_processes(p_silence interval) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pools text[];
  v_dead integer;
begin
  if not pg_try_advisory_xact_lock(hashtext('app.reap_processes')) then
    return 0;
  end if;
  with dead as (
    delete from app.processes p where p.beat_at < now() - p_silence returning p.pool_id
  )
  select array_agg(d.pool_id) filter (where d.pool_id is not null), count(*) into v_pools, v_dead from dead d;
  if v_pools is not null then
    perform graphile_worker.force_unlock_workers(v_pools);
  end if;
  return v_dead;
end
$$;
