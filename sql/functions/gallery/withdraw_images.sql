-- Takes pictures of the account's own back out of the gallery: the one of this id, or all those of the generation of this id.
-- p_account null: whoever's they are. Returns those that are out of it now, also those that were before.
create or replace function app.withdraw_images(p_account uuid, p_id uuid) returns setof uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_ids uuid[];
begin
  select array_agg(g.asset_id order by g.asset_id) into v_ids
    from app.gallery_items g
    where (g.asset_id = p_id or g.request_id = p_id) and g.account_id = coalesce(p_account, g.account_id);
  perform from app.assets a where a.id = any (v_ids) order by a.id for update;
  update app.gallery_items g set withdrawn_at = greatest(clock_timestamp(), g.published_at)
    where g.asset_id = any (v_ids) and g.withdrawn_at is null;
  perform app.release_asset(u.id) from unnest(v_ids) u(id);
  return query select u.id from unnest(v_ids) u(id);
end
$$;
