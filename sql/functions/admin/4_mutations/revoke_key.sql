-- Revokes an API key (app.revoke_key writes the audit row, once).
create function admin.revoke_key(p_key uuid) returns admin.keys
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_result admin.keys;
begin
  if app.revoke_key(p_key, app.current_operator()) is null then
    raise exception 'no such key' using errcode = 'no_data_found';
  end if;
  select * into v_result from admin.keys k where k.id = p_key;
  return v_result;
end
$$;
comment on function admin.revoke_key is '@resultFieldName key
Revokes an API key at once and for good. Revoking again keeps the first date.';
