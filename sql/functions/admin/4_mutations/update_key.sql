-- Changes the columns that p_patch names; null clears one. Called by the updateKey mutation of admin-graphql, whose input type
-- says which columns there are. A revoked key stays as it is. A cap that is set where there was none counts what the key has used of
-- the running day or month already.
create function admin.update_key(p_key uuid, p_patch jsonb) returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before app.keys;
  v_wanted app.keys;
  v_after app.keys;
  v_begun text[]; -- caps
begin
  select * into v_before from app.keys k where k.id = p_key for update;
  if not found then
    raise exception 'no such key' using errcode = 'no_data_found';
  end if;
  if v_before.revoked_at is not null then
    raise exception 'the key is revoked' using errcode = 'object_not_in_prerequisite_state';
  end if;
  v_wanted := jsonb_populate_record(v_before, p_patch);
  if v_wanted is not distinct from v_before then
    return p_key;
  end if;
  if p_patch ? 'allowed_models' then
    perform app.refuse_unknown_models(v_wanted.allowed_models);
  end if;
  update app.keys k
    set name = v_wanted.name,
        scopes = v_wanted.scopes,
        allowed_models = v_wanted.allowed_models,
        cap_per_request_ap = v_wanted.cap_per_request_ap,
        cap_daily_ap = v_wanted.cap_daily_ap,
        cap_monthly_ap = v_wanted.cap_monthly_ap,
        rate_per_minute = v_wanted.rate_per_minute,
        expires_at = v_wanted.expires_at
    where k.id = p_key
    returning * into v_after;
  v_begun := array_remove(array[
    case when v_before.cap_daily_ap is null and v_after.cap_daily_ap is not null then 'key:day' end,
    case when v_before.cap_monthly_ap is null and v_after.cap_monthly_ap is not null then 'key:month' end
  ], null);
  if cardinality(v_begun) > 0 then
    perform app.begin_caps(v_after.account_id, p_key, v_begun);
  end if;
  perform app.audit(app.current_operator(), 'update_key', 'key', p_key::text, to_jsonb(v_before) - 'secret_hash',
    to_jsonb(v_after) - 'secret_hash');
  return p_key;
end
$$;
comment on function admin.update_key is '@behavior -*';
