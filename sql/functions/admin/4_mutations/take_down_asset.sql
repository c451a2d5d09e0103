-- Takes a file down for good, whoever's it is: out of the gallery, and 410 for its owner too. Once: a second call changes nothing.
create function admin.take_down_asset(p_asset uuid, p_reason text) returns admin.assets
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before admin.assets;
  v_result admin.assets;
begin
  perform app.require_reason(p_reason);
  select * into v_before from admin.assets a where a.id = p_asset;
  if not found then
    raise exception 'no such asset' using errcode = 'no_data_found';
  end if;
  if v_before.deleted_at is null then
    perform app.delete_assets(null, array[p_asset]);
  end if;
  select * into v_result from admin.assets a where a.id = p_asset;
  if v_before.deleted_at is null then
    perform app.audit(app.current_operator(), 'take_down_asset', 'asset', p_asset::text, to_jsonb(v_before),
      to_jsonb(v_result) || jsonb_build_object('reason', p_reason));
  end if;
  return v_result;
end
$$;
comment on function admin.take_down_asset is '@resultFieldName asset
Takes a file down for good, out of the gallery too: from this moment nobody is shown it, its owner included.';
