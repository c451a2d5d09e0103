-- The files of these are gone from the store. What was stored keeps its row, which says that it was there; the rest leaves nothing.
create or replace function app.purge_assets(p_ids uuid[]) returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
  delete from app.assets a where a.id = any (p_ids) and a.state = 'writing';
  update app.assets a
    set purged_at = now(), sweep_at = null
    where a.id = any (p_ids) and a.purged_at is null and (a.deleted_at is not null or a.expires_at <= now());
$$;
