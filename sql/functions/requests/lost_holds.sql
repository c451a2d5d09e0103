-- Of the requests a worker is running, those whose hold somebody else resolved: cancelled or expired. It stops them.
create or replace function app.lost_holds(p_requests uuid[]) returns setof uuid
language sql stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select r.id from unnest(p_requests) r(id)
    where not exists (select from app.holds h where h.request_id = r.id)
$$;
