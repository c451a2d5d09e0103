-- Unlocks the jobs that a living worker holds and does not know (p_known: those it does): the answer to its fetch was lost with
-- a connection, or a crash of the database took back that they were finished. Returns how many.
create or replace function app.free_forgotten_jobs(p_pool_id text, p_known bigint[], p_age interval) returns integer
language sql
set search_path = pg_catalog, pg_temp
as $$
  with freed as (
    update graphile_worker._private_jobs j set locked_at = null, locked_by = null
      where j.locked_by = p_pool_id and j.locked_at < now() - p_age and j.id <> all (p_known)
      returning j.id
  )
  select count(*)::integer from freed
$$;
