-- A process stops in good order. What a worker could not give back of its jobs is free at once.
create or replace function app.leave(p_id uuid) returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  with gone as (
    delete from app.processes p where p.id = p_id returning p.pool_id
  )
  select graphile_worker.force_unlock_workers(array[g.pool_id]) from gone g where g.pool_id is not null
$$;
