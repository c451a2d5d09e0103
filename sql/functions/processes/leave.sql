-- A process stops in good order.
create or replace function app.leave(p_id uuid) returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  delete from app.processes p where p.id = p_id
$$;
