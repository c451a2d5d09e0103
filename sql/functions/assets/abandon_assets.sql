-- Of these, the files that were never stored: theirs to delete is the caller's for ten minutes, then housekeeping's. Inputs of a
-- request that is under way stay.
create or replace function app.abandon_assets(p_ids uuid[]) returns table (id uuid, kind text, content_type text)
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  update app.assets a
    set sweep_at = now() + interval '10 minutes'
    where a.id = any (p_ids) and a.state = 'writing'
      and not (a.kind = 'input' and exists (select from app.holds h where h.request_id = a.request_id))
    returning a.id, a.kind, a.content_type
$$;
