-- Unlocks the jobs of workers that are not on the list: ended before their first heartbeat, or taken off it while they
-- were frozen and then ended. Reads the whole jobs table: not for every heartbeat. Returns how many.
create or replace function app.free_orphaned_jobs(p_silence interval) returns integer
language sql
set search_path = pg_catalog, pg_temp
as $$
  with freed as (
    update graphile_worker._private_jobs j set locked_at = null, locked_by = null
      where j.locked_at < now() - p_silence
        and not exists (select from app.processes p where p.pool_id = j.locked_by)
      returning j.id
  )
  select count(*)::integer from freed
$$;
