-- By their owner, or taken down (p_account null: whoever's they are): gone from this moment, from the gallery too, their files at the
-- next sweep. Returns those that were there to delete.
create or replace function app.delete_assets(p_account uuid, p_ids uuid[]) returns setof uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_ids uuid[];
  v_now timestamptz;
begin
  -- in the order in which everybody locks a generation's pictures
  select array_agg(d.id) into v_ids
    from (
      select a.id from app.assets a
        where a.id = any (p_ids) and a.account_id = coalesce(p_account, a.account_id)
          and a.state = 'stored' and a.deleted_at is null
        order by a.id
        for update
    ) d;
  -- the rows may have been waited for; what was withdrawn meanwhile was so before this
  v_now := clock_timestamp();
  update app.assets a
    set deleted_at = v_now,
        sweep_at = case when a.purged_at is null then now() end
    where a.id = any (v_ids);
  -- a statement of its own: it sees what was published while the rows above were waited for
  update app.gallery_items g set withdrawn_at = greatest(v_now, g.published_at)
    where g.asset_id = any (v_ids) and g.withdrawn_at is null;
  return query select u.id from unnest(v_ids) u(id);
end
$$;
