-- By their owner, or taken down (p_account null: whoever's they are): gone from this moment, their files at the next sweep.
-- Returns those that were there to delete.
create or replace function app.delete_assets(p_account uuid, p_ids uuid[]) returns setof uuid
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
  update app.assets a
    set deleted_at = now(),
        sweep_at = case when a.purged_at is null then now() end
    where a.id = any (p_ids) and a.account_id = coalesce(p_account, a.account_id)
      and a.state = 'stored' and a.deleted_at is null
    returning a.id
$$;
